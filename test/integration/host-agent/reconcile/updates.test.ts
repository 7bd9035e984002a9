/** Updates in place on a real engine (ADR 35): one version runs, whatever goes wrong. */
import t from 'tap';
import type { ContainerId } from '../../../../schemas/ids.ts';
import type { UpdatePhase } from '../../../../schemas/api/container.ts';
import { startRig, steady, type Rig } from '../../../host-agent/support/rig.ts';
import { until } from '../../../support/until.ts';

t.setTimeout(240_000);

/** A server that shows its version on port 8080. */
const serving = `mkdir -p /tmp/www; echo "$VERSION" > /tmp/www/index.html; httpd -p 8080 -h /tmp/www; ${steady}`;
const crashing = 'echo about to crash; exit 3';
const quickly = { UPDATE_VERIFY: '1500ms' };

/** A container that runs its first version. */
async function running({ controlPlane, script }: Rig) {
  const { id } = controlPlane.desire({ ...(await script('serving', serving)), ports: [8080], env: { VERSION: 'one' } });
  const { observation } = await controlPlane.reported(id, (item) => item.observation.status === 'running');
  return { id, address: observation.addresses[0]?.address ?? 'none' };
}

const phaseIs =
  (...phases: readonly UpdatePhase[]) =>
  (item: { update?: { phase: UpdatePhase } | undefined }) =>
    item.update !== undefined && phases.includes(item.update.phase);

const upOf = async ({ engine }: Rig, id: ContainerId) =>
  (await engine.containers(id)).filter(({ State }) => State.Running);

const page = async (address: string): Promise<string> => {
  const response = await fetch(`http://${address}/`, { signal: AbortSignal.timeout(5000) });
  return (await response.text()).trim();
};

/** A container that runs may not listen yet. */
const saying = (address: string, version: string) =>
  until(
    `version ${version} at ${address}`,
    () => page(address),
    (said) => said === version,
  );

/** The one version that runs, and no copy of another. */
const settled = (rig: Rig, id: ContainerId, address: string, version: string) =>
  until(
    `only version ${version} is left`,
    async () => {
      const [one, ...others] = await rig.engine.containers(id);
      return others.length === 0 && one?.State.Running === true ? page(address) : undefined;
    },
    (said) => said === version,
  );

t.test('the new version takes over address and port', async (t) => {
  const rig = await startRig(t);
  const { controlPlane, engine, agent, script } = rig;
  const process = agent(quickly);
  const { id, address } = await running(rig);
  const before = await engine.networked(id);

  controlPlane.update(id, { ...(await script('second', `true; ${serving}`)), env: { VERSION: 'two' } });
  const verifying = await controlPlane.reported(
    id,
    (item) => phaseIs('verifying')(item) && item.observation.status === 'running',
  );
  t.equal(verifying.observation.addresses[0]?.address, address);
  await saying(address, 'two');
  t.equal((await upOf(rig, id)).length, 1);
  const preparing = controlPlane.reports(id).filter(phaseIs('preparing'));
  t.ok(preparing.length > 0);
  t.ok(
    preparing.every(({ observation }) => observation.status === 'running'),
    'the old version runs while the new one is made',
  );
  await controlPlane.reported(id, phaseIs('done'));
  t.equal((await engine.containers(id)).length, 2, 'the owner has not heard that it is done');
  controlPlane.settle(id);
  await settled(rig, id, address, 'two');
  t.equal((await engine.networked(id)).Id, before.Id, 'the sandbox is the same');
  await process.stop();
});

t.test('other ports: a sandbox of its own', async (t) => {
  const rig = await startRig(t);
  const { controlPlane, engine, agent } = rig;
  const process = agent(quickly);
  const { id, address } = await running(rig);
  controlPlane.update(id, { ports: [8080, 9090], env: { VERSION: 'two' } });
  const { observation } = await controlPlane.reported(id, phaseIs('done'));
  t.equal(observation.addresses.length, 2);
  const [{ address: next = 'none' } = {}] = observation.addresses;
  t.not(next, address);
  controlPlane.settle(id);
  await settled(rig, id, next, 'two');
  t.match((await engine.networked(id)).NetworkSettings.Ports, { '9090/tcp': [{}] });
  await process.stop();
});

t.test('an update that fails is rolled back', async (t) => {
  const rig = await startRig(t);
  const { controlPlane, engine, agent, script, registry } = rig;
  const process = agent(quickly);
  const { id, address } = await running(rig);
  const first = await engine.only(id);

  for (const [name, desire, reason] of [
    ['no such image', { registry, repository: 'longshore/demo', tag: 'nosuch' }, 'image_not_found'],
    ['no such host', { registry: '127.0.0.1:1', repository: 'longshore/demo', tag: '1' }, 'image_pull'],
    ['no repository', { repository: null }, 'image_missing'],
  ] as const) {
    await t.test(`${name}: the old version never stops`, async (t) => {
      const { generation } = controlPlane.update(id, { ...desire, env: { VERSION: 'two' } });
      const { update, observation } = await controlPlane.reported(
        id,
        (item) => item.generation === generation && phaseIs('rolled_back')(item),
      );
      t.equal(update?.reason, reason);
      t.equal(observation.status, 'running');
      controlPlane.settle(id);
      await settled(rig, id, address, 'one');
      t.match(await engine.only(id), { Id: first.Id, State: { StartedAt: first.State.StartedAt } });
    });
  }

  await t.test('one that crashes', async (t) => {
    const { generation } = controlPlane.update(id, await script('crashing', crashing));
    const { update } = await controlPlane.reported(
      id,
      (item) => item.generation === generation && phaseIs('rolled_back')(item) && item.observation.status === 'running',
    );
    t.match(update, { reason: /exited|crash_loop/, message: /exited with code 3/ });
    await saying(address, 'one');
    controlPlane.settle(id);
    await settled(rig, id, address, 'one');
    t.equal((await engine.only(id)).Id, first.Id, 'the same container, with what it wrote');
  });

  await t.test('a second update in the middle of one that crashes', async (t) => {
    controlPlane.update(id, await script('crashing', crashing));
    await controlPlane.reported(id, (item) => phaseIs('verifying')(item));
    const { generation } = controlPlane.update(id, {
      ...(await script('serving', serving)),
      env: { VERSION: 'three' },
    });
    await controlPlane.reported(id, (item) => item.generation === generation && phaseIs('done')(item));
    controlPlane.settle(id);
    await settled(rig, id, address, 'three');
    t.not((await engine.only(id)).Id, first.Id);
  });
  await process.stop();
});

t.test('of two updates in a row, the first runs until the second is made', async (t) => {
  const rig = await startRig(t);
  const { controlPlane, engine, agent } = rig;
  const process = agent(quickly);
  const { id, address } = await running(rig);
  const first = await engine.only(id);
  controlPlane.update(id, { env: { VERSION: 'two' } });
  await controlPlane.reported(id, (item) => phaseIs('verifying')(item) && item.observation.status === 'running');
  const { generation } = controlPlane.update(id, { env: { VERSION: 'three' } });
  await controlPlane.reported(id, (item) => item.generation === generation && phaseIs('done')(item));
  const kept = (await engine.containers(id)).find(({ Id }) => Id === first.Id);
  t.equal(kept?.State.StartedAt, first.State.StartedAt, 'what ran before both never started again');
  t.equal((await engine.containers(id)).length, 2);
  controlPlane.settle(id);
  await settled(rig, id, address, 'three');
  await process.stop();
});

t.test('without the control plane', async (t) => {
  const rig = await startRig(t);
  const { controlPlane, agent, script } = rig;
  const process = agent(quickly);
  const { id, address } = await running(rig);
  controlPlane.update(id, await script('crashing', crashing));
  await controlPlane.reported(id, phaseIs('verifying'));
  controlPlane.goAway();
  await saying(address, 'one');
  await controlPlane.comeBack();
  const { update } = await controlPlane.reported(id, phaseIs('rolled_back'));
  t.match(update?.message, /exited with code 3/);
  controlPlane.settle(id);
  await settled(rig, id, address, 'one');
  await process.stop();
});

t.test('the agent is killed at a phase', async (t) => {
  const rig = await startRig(t);
  const { controlPlane, agent, script } = rig;
  let process = agent(quickly);
  const { id, address } = await running(rig);
  let version = 'one';
  for (const phase of ['preparing', 'verifying', 'done'] as const) {
    const { generation } = controlPlane.update(id, {
      ...(await script('serving', serving)),
      env: { VERSION: phase },
    });
    await controlPlane.reported(id, (item) => item.generation === generation && phaseIs(phase)(item));
    await process.kill9();
    t.ok((await upOf(rig, id)).length <= 1, `${phase}: no two run`);
    process = agent(quickly);
    await controlPlane.reported(id, (item) => item.generation === generation && phaseIs('done')(item));
    version = phase;
    controlPlane.settle(id);
    await settled(rig, id, address, version);
  }
  for (const phase of ['verifying', 'rolled_back'] as const) {
    const { generation } = controlPlane.update(id, await script('crashing', crashing));
    await controlPlane.reported(id, (item) => item.generation === generation && phaseIs(phase)(item));
    await process.kill9();
    process = agent(quickly);
    await controlPlane.reported(id, (item) => item.generation === generation && phaseIs('rolled_back')(item));
    controlPlane.settle(id);
    await settled(rig, id, address, version);
  }
  await process.stop();
});

t.test('a stop in the middle of an update', async (t) => {
  const rig = await startRig(t);
  const { controlPlane, agent, script, engine } = rig;
  const process = agent(quickly);
  const { id, address } = await running(rig);
  controlPlane.update(id, { ...(await script('serving', serving)), env: { VERSION: 'two' } });
  await controlPlane.reported(id, phaseIs('verifying'));
  controlPlane.settle(id);
  controlPlane.desire({ id, desired: 'stopped' });
  await controlPlane.reported(id, ({ observation }) => observation.status === 'stopped');
  await until(
    'one copy is left, and it is down',
    () => engine.containers(id),
    (all) => all.length === 1 && all.every(({ State }) => !State.Running),
  );
  controlPlane.desire({ id, desired: 'running' });
  await settled(rig, id, address, 'two');
  controlPlane.desire({ id, desired: 'removed' });
  await controlPlane.reported(id, ({ gone }) => gone);
  t.same(await engine.containers(id), []);
  await process.stop();
});
