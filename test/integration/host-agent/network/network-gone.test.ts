import t from 'tap';
import { toolHere } from '../../../../dev/fetch/tools.ts';
import { run } from '../../../../dev/process/run.ts';
import { startRig, steady, type Rig } from '../../../host-agent/support/rig.ts';
import { until } from '../../../support/until.ts';

const isRunning = ({ observation }: { observation: { status: string } }) => observation.status === 'running';
const isStopped = ({ observation }: { observation: { status: string } }) => observation.status === 'stopped';

const pruneOf = (cluster: string): string =>
  `/networks/prune?filters=${encodeURIComponent(JSON.stringify({ label: [`longshore.cluster=${cluster}`] }))}`;

/** The engine frees the network a moment after the last container on it has ended. */
const pruned = ({ controlPlane, engine }: Rig): Promise<unknown> =>
  until('the network is gone', async () => {
    const { text } = await engine.call('POST', pruneOf(controlPlane.cluster));
    return text.includes('longshore-');
  });

t.test('a network pruned while its container was stopped is made again, with the container', async (t) => {
  const rig = await startRig(t);
  const { controlPlane, engine, agent, script } = rig;
  agent({ LONGSHORE_SANDBOX: 'off' });
  const image = await script('steady', steady);
  const { id, placement } = controlPlane.desire(image);
  await controlPlane.reported(id, isRunning);
  const before = await engine.only(id);
  controlPlane.desire({ id, desired: 'stopped' });
  await controlPlane.reported(id, isStopped);
  await pruned(rig);

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

t.test('sandboxes keep the network; if both are removed, both are made again', async (t) => {
  const rig = await startRig(t);
  const { controlPlane, engine, agent, script } = rig;
  agent({ LONGSHORE_SANDBOX_POOL: '0' });
  const { id, placement } = controlPlane.desire({ ...(await script('steady', steady)), ports: [8080] });
  await controlPlane.reported(id, isRunning);
  const sandbox = await engine.networked(id);
  controlPlane.desire({ id, desired: 'stopped' });
  await controlPlane.reported(id, isStopped);
  const kept = await engine.call('POST', pruneOf(controlPlane.cluster));
  t.notMatch(kept.text, /longshore-/, 'a container that is stopped has its network');

  await engine.call('DELETE', `/containers/${sandbox.Id}?force=1`);
  await pruned(rig);
  const { generation } = controlPlane.desire({ id, desired: 'running' });
  await controlPlane.reported(id, (item) => item.generation === generation && isRunning(item));
  t.equal((await engine.only(id)).Config.Labels['longshore.placement'], String(placement), 'the placement is the same');
  t.not((await engine.networked(id)).Id, sandbox.Id);
  t.same(controlPlane.faults(), []);
});

t.test('a sandbox that is taken from its network is replaced, with its container', async (t) => {
  const rig = await startRig(t);
  const { controlPlane, engine } = rig;
  rig.agent({ LONGSHORE_SANDBOX_POOL: '0' });
  const { id } = controlPlane.desire({
    ...(await rig.script('listening', `mkdir -p /www; echo hello > /www/index.html; httpd -p 8080 -h /www; ${steady}`)),
    ports: [8080],
  });
  /** Checks that it is in another sandbox, and answers at the reported address. */
  const answersIn = async (other: string): Promise<string> => {
    await until('it answers from another sandbox', async () => {
      const sandbox = await engine.networked(id).catch(() => undefined);
      const [at] = controlPlane.last(id)?.observation.addresses ?? [];
      if (sandbox === undefined || sandbox.Id === other || at === undefined) return false;
      return fetch(`http://${at.address}/`, { signal: AbortSignal.timeout(1000) }).then(
        ({ ok }) => ok,
        () => false,
      );
    });
    return (await engine.networked(id)).Id;
  };
  const first = await answersIn('');

  // `docker network disconnect -f`
  const [network] = Object.keys((await engine.networked(id)).NetworkSettings.Networks);
  const { status, text } = await engine.call('POST', `/networks/${network}/disconnect`, {
    Container: first,
    Force: true,
  });
  t.equal(status, 200, text);
  const second = await answersIn(first);

  // `ip link delete` of its interface on the host: the engine hears nothing of it.
  const { State } = await engine.networked(id);
  const inside = ['--target', String(State.Pid), '--net', '--', 'ip', 'link', 'delete', 'eth0'];
  await toolHere('ip');
  t.match(await run('nsenter', inside, { deadlineMs: 30_000 }), { code: 0 });
  t.match(
    (await engine.networked(id)).NetworkSettings.Networks,
    { [String(network)]: {} },
    'the engine shows it still',
  );
  await answersIn(second);
  t.same(controlPlane.faults(), []);
});
