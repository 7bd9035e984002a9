import t from 'tap';
import { startRig, steady } from '../../../host-agent/support/rig.ts';
import { until } from '../../../support/until.ts';

t.test('the control plane goes away and comes back', async (t) => {
  const { controlPlane, engine, agent, script } = await startRig(t);
  const image = await script('steady', steady);
  const process = agent();
  const [kept, crashed, changed] = controlPlane
    .desireAll(['a', 'b', 'c'].map((tenant) => ({ ...image, tenant })))
    .map(({ id }) => id);
  if (kept === undefined || crashed === undefined || changed === undefined) throw new Error('three were declared');
  const isRunning = ({ observation }: { observation: { status: string } }) => observation.status === 'running';
  await Promise.all([kept, crashed, changed].map((id) => controlPlane.reported(id, isRunning)));
  const before = await engine.only(kept);

  await t.test('a container that crashes meanwhile restarts', async () => {
    await controlPlane.nats.kill9();
    const { Id, State } = await engine.only(crashed);
    await engine.call('POST', `/containers/${Id}/kill`);
    const isBack = async () => {
      const now = await engine.only(crashed);
      return (now.State.Running && now.State.StartedAt !== State.StartedAt) || undefined;
    };
    await until('restarted without the control plane', isBack);
  });

  await t.test('changes made meanwhile are carried out, and events are reported', async (t) => {
    controlPlane.desire({ id: changed, desired: 'removed' });
    const added = controlPlane.desire({ ...image, tenant: 'd' });
    await controlPlane.nats.restart();
    await controlPlane.reported(changed, ({ gone }) => gone);
    await controlPlane.reported(added.id, isRunning);
    const item = await controlPlane.reported(
      crashed,
      (each) => each.observation.restart_count === 1 && isRunning(each),
    );
    t.equal(item.observation.reason, null);
    t.same((await engine.only(kept)).State, before.State, 'other containers kept running');
  });

  t.same(controlPlane.faults(), []);
  t.equal(process.exitCode(), undefined);
});

t.test('without answers, reports wait and none is lost', async (t) => {
  const { controlPlane, agent, script } = await startRig(t);
  const { id } = controlPlane.desire(await script('steady', steady));
  agent();
  await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  controlPlane.goAway();
  const { generation } = controlPlane.desire({ id, desired: 'stopped' });
  await controlPlane.comeBack();
  await controlPlane.reported(id, (item) => item.generation === generation && item.observation.status === 'stopped');
  t.same(controlPlane.faults(), []);
});

t.test('after a restore, the agent reports everything again', async (t) => {
  const { controlPlane, agent, script } = await startRig(t);
  const { id } = controlPlane.desire(await script('steady', steady));
  agent();
  await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  const hellos = controlPlane.hellos().length;
  controlPlane.restore();
  await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  t.equal(controlPlane.hellos().length, hellos + 1, 'one hello suffices: it names the highest session');
  t.same(controlPlane.faults(), []);
});

t.test('after a restore before the first answer of an owner, the agent reports everything again', async (t) => {
  const { controlPlane, agent, script } = await startRig(t);
  const { id } = controlPlane.desire(await script('steady', steady));
  const isRunning = ({ observation }: { observation: { status: string } }): boolean => observation.status === 'running';
  const first = agent();
  await controlPlane.reported(id, isRunning);
  await first.kill9();
  controlPlane.ignoreSyncs(true);
  const reports = controlPlane.reports(id).length;
  agent();
  await until(
    'a report that rests on the desired set on disk',
    () => controlPlane.reports(id).length > reports || undefined,
  );
  controlPlane.restore();
  controlPlane.ignoreSyncs(false);
  await controlPlane.reported(id, isRunning);
  t.same(controlPlane.faults(), []);
});

t.test('with STOP_ON_DISCONNECT, containers stop, and run again after a sync', async (t) => {
  const { controlPlane, engine, agent, script } = await startRig(t);
  const { id } = controlPlane.desire(await script('steady', steady));
  agent({ SYNC_INTERVAL: '500ms', STOP_ON_DISCONNECT: '2s' });
  await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  controlPlane.goAway();
  await until('stopped', async () => !(await engine.only(id)).State.Running || undefined);
  await controlPlane.comeBack();
  await until('running again', async () => (await engine.only(id)).State.Running || undefined);
  const item = await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  t.equal(item.observation.restart_count, 0, 'the stop counts as no crash');
});
