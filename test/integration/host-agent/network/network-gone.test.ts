import t from 'tap';
import { startRig, steady } from '../../../host-agent/support/rig.ts';

const isRunning = ({ observation }: { observation: { status: string } }) => observation.status === 'running';
const isStopped = ({ observation }: { observation: { status: string } }) => observation.status === 'stopped';

t.test('a network pruned while its container was stopped is made again, with the container', async (t) => {
  const { controlPlane, engine, agent, script } = await startRig(t);
  agent();
  const image = await script('steady', steady);
  const { id, placement } = controlPlane.desire(image);
  await controlPlane.reported(id, isRunning);
  const before = await engine.only(id);
  controlPlane.desire({ id, desired: 'stopped' });
  await controlPlane.reported(id, isStopped);
  const filters = encodeURIComponent(JSON.stringify({ label: [`longshore.cluster=${controlPlane.cluster}`] }));
  const pruned = await engine.call('POST', `/networks/prune?filters=${filters}`);
  t.match(pruned.text, /longshore-/, 'the network is gone');

  const { generation } = controlPlane.desire({ id, desired: 'running' });
  await controlPlane.reported(id, (item) => item.generation === generation && isRunning(item));
  const after = await engine.only(id);
  t.equal(after.Config.Labels['longshore.placement'], String(placement), 'the placement is the same');
  t.equal(
    after.Config.Labels['longshore.spec'],
    before.Config.Labels['longshore.spec'],
    'the specification is the same',
  );
  t.same(controlPlane.faults(), []);
});
