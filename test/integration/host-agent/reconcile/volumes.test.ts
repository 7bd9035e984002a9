/**
 * Paths that an image declares as VOLUME, on a real engine: every copy of a container has their
 * data, which is removed with the container (ADR 46).
 */
import t from 'tap';
import type { UpdatePhase } from '../../../../schemas/api/container.ts';
import { labels } from '../../../../host-agent/docker/ownership.ts';
import { defaultPolicy } from '../../../../schemas/api/policy.ts';
import type { ContainerId } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import { pushTestImage } from '../../../../dev/servers/registry.ts';
import type { ReportItem } from '../../../../schemas/wire/host.ts';
import { startRig, steady, type Rig } from '../../../host-agent/support/rig.ts';
import { until } from '../../../support/until.ts';

t.setTimeout(240_000);

const quickly = { UPDATE_VERIFY: '1500ms' };
const crashing = 'exit 3';

const isRunning = ({ observation }: ReportItem): boolean => observation.status === 'running';
const phaseIs =
  (generation: number, ...phases: readonly UpdatePhase[]) =>
  (item: ReportItem): boolean =>
    item.generation === generation && item.update !== undefined && phases.includes(item.update.phase);

/** An image with a volume, and a file of its own in it. */
async function withVolume({ registry }: Rig, path: string, script = steady) {
  const repository = `longshore/volume${path.replaceAll('/', '-')}-${script === steady ? 'steady' : 'crashing'}`;
  const file = `${path.slice(1)}/seed`;
  const files = [
    { kind: 'folder', path: path.slice(1) },
    { kind: 'file', path: file, content: 'of the image\n' },
  ] as const;
  await pushTestImage(registry, { repository, tag: '1', cmd: ['sh', '-c', script], volumes: [path], files });
  return { registry, repository, tag: '1' };
}

const lines = (text: string): string[] => text.split(/\r?\n/).filter((line) => line !== '');
const kept = async ({ engine }: Rig, id: ContainerId, path = '/data'): Promise<string[]> =>
  lines(await engine.exec(id, ['sh', '-c', `cat ${path}/*`]));
const write = ({ engine }: Rig, id: ContainerId, text: string, path = '/data') =>
  engine.exec(id, ['sh', '-c', `echo ${text} > ${path}/${text}`]);

/** One copy is left, and it runs. */
const settled = async ({ engine, controlPlane }: Rig, id: ContainerId): Promise<void> => {
  controlPlane.settle(id);
  await until(
    'one copy that runs',
    () => engine.containers(id),
    (all) => all.length === 1 && all[0]?.State.Running === true,
  );
};

async function running(rig: Rig, desire: object = {}) {
  const { controlPlane } = rig;
  const { id } = controlPlane.desire({ ...(await withVolume(rig, '/data')), ...desire });
  await controlPlane.reported(id, isRunning);
  return id;
}

async function updated(rig: Rig, id: ContainerId, desire: object, phase: UpdatePhase = 'done') {
  const { controlPlane } = rig;
  const { generation } = controlPlane.update(id, desire);
  await controlPlane.reported(id, (item) => phaseIs(generation, phase)(item) && isRunning(item));
  await settled(rig, id);
}

t.test('updates, roll backs, and other ways to another copy', async (t) => {
  const rig = await startRig(t);
  const { controlPlane, engine } = rig;
  const process = rig.agent(quickly);
  const id = await running(rig);
  t.same(await kept(rig, id), ['of the image'], 'at first it has what the image has there');
  t.same(controlPlane.last(id)?.observation.volumes, ['/data'], 'its owner hears of them');
  await write(rig, id, 'written');
  const all = ['of the image', 'written'];

  await t.test('another value in its environment', async (t) => {
    await updated(rig, id, { env: { A: '2' } });
    t.same(await kept(rig, id), all);
  });

  await t.test('another health check', async (t) => {
    const health = { command: ['true'], interval: 1, timeout: 1, retries: 3, start_period: 0 };
    await updated(rig, id, { policy: { ...defaultPolicy, health: { ...health, restart_unhealthy: false } } });
    t.same(await kept(rig, id), all);
  });

  await t.test('another image, which crashes: rolled back', async (t) => {
    await updated(rig, id, await withVolume(rig, '/data', crashing), 'rolled_back');
    t.same(await kept(rig, id), all);
  });

  await t.test('a second update rolled back, with the first one’s version in between', async (t) => {
    const first = controlPlane.update(id, { env: { A: '3' } });
    await controlPlane.reported(id, (item) => phaseIs(first.generation, 'verifying')(item) && isRunning(item));
    await updated(rig, id, await withVolume(rig, '/data', crashing), 'rolled_back');
    t.same(await kept(rig, id), all);
  });

  await t.test('another image that declares another path, and back', async (t) => {
    await updated(rig, id, await withVolume(rig, '/other'));
    t.same(await kept(rig, id, '/other'), ['of the image']);
    t.notMatch(await engine.exec(id, ['ls', '/']), /\bdata\b/, 'it has no path that it does not declare');
    await updated(rig, id, await withVolume(rig, '/data'));
    t.same(await kept(rig, id), all);
  });

  await t.test('a copy of an outdated placement, and one that was removed by hand', async (t) => {
    const { Id } = await engine.only(id);
    controlPlane.desire({ id, placement: 2 });
    await until('another copy', async () => {
      const [one] = await engine.containers(id);
      return one !== undefined && one.Id !== Id && one.State.Running;
    });
    t.same(await kept(rig, id), all);
    const second = await engine.only(id);
    await engine.call('DELETE', `/containers/${second.Id}?force=1&v=1`);
    await until('a third copy', async () => {
      const [one] = await engine.containers(id);
      return one !== undefined && one.Id !== second.Id && one.State.Running;
    });
    t.same(await kept(rig, id), all);
  });

  await t.test('deleted: its volumes are gone before its owner hears of it', async (t) => {
    t.equal((await engine.volumes(id)).length, 2);
    controlPlane.desire({ id, desired: 'removed' });
    await controlPlane.reported(id, ({ gone }) => gone);
    t.same(await engine.volumes(id), []);
  });
  await process.stop();
});

t.test('paths that an image declares in other ways', async (t) => {
  const rig = await startRig(t);
  const { controlPlane, engine, registry } = rig;
  const process = rig.agent(quickly);
  const paths = ['/data', '/four', '/one', '/sub/two'];
  const volumes = ['data', './one/', 'sub//two', '/three/../four//'];
  const files = [
    { kind: 'folder', path: 'data' },
    { kind: 'file', path: 'data/seed', content: 'of the image\n' },
  ] as const;
  await pushTestImage(registry, { repository: 'longshore/paths', tag: '1', cmd: ['sh', '-c', steady], volumes, files });
  const all = async (): Promise<string[]> => {
    const { text } = await engine.call('GET', '/volumes');
    return (JSON.parse(text) as { Volumes: { Name: string }[] }).Volumes.map(({ Name }) => Name);
  };
  const before = new Set(await all());
  const made = async (): Promise<string[]> => (await all()).filter((name) => !before.has(name));

  const { id } = controlPlane.desire({ registry, repository: 'longshore/paths', tag: '1' });
  await controlPlane.reported(id, isRunning);
  t.same(controlPlane.last(id)?.observation.volumes, paths);
  t.same(await kept(rig, id), ['of the image']);
  for (const path of paths) await write(rig, id, 'written', path);
  const count = (await made()).length;
  const isEach = async (what: string): Promise<void> => {
    for (const path of paths) t.match((await kept(rig, id, path)).at(-1), 'written', `${path}: ${what}`);
    t.same(controlPlane.last(id)?.observation.volumes, paths);
    t.equal((await made()).length, count, 'no volume for each copy stays');
  };
  await updated(rig, id, { env: { A: '1' } });
  await isEach('an update');
  await updated(rig, id, await withVolume(rig, '/data', crashing), 'rolled_back');
  await isEach('a roll back');

  controlPlane.desire({ id, desired: 'removed' });
  await controlPlane.reported(id, ({ gone }) => gone);
  t.same(await made(), []);
  await process.stop();
});

t.test('data of a copy of before 0.2.0, which its image declares at a relative path', async (t) => {
  const rig = await startRig(t);
  const { controlPlane, engine, registry } = rig;
  let process = rig.agent(quickly);
  const image = { repository: 'longshore/relative', tag: '1' };
  await pushTestImage(registry, { ...image, cmd: ['sh', '-c', steady], volumes: ['data'] });
  const { id } = controlPlane.desire({ registry, ...image });
  await controlPlane.reported(id, isRunning);
  await process.kill9();
  const { Id, Name, Config, HostConfig } = await engine.only(id);
  await engine.call('DELETE', `/containers/${Id}?force=1&v=1`);
  const { Labels } = Config;
  const body = { Image: Labels[labels.image], Labels, HostConfig: { ...HostConfig, Mounts: [] } };
  t.equal((await engine.call('POST', `/containers/create?name=${Name.slice(1)}`, body)).status, 201);
  process = rig.agent(quickly);
  await until('it runs', async () => (await engine.containers(id))[0]?.State.Running === true);
  await write(rig, id, 'written');
  for (const A of ['1', '2']) {
    await updated(rig, id, { env: { A } });
    t.same(await kept(rig, id), ['written']);
  }
  await process.stop();
});

t.test('the agent is killed at a phase', async (t) => {
  const rig = await startRig(t);
  const { controlPlane, engine } = rig;
  let process = rig.agent(quickly);
  const id = await running(rig);
  await write(rig, id, 'written');
  for (const [phase, end, desire] of [
    ['preparing', 'done', { env: { A: '1' } }],
    ['verifying', 'done', { env: { A: '2' } }],
    ['done', 'done', { env: { A: '3' } }],
    ['verifying', 'rolled_back', await withVolume(rig, '/data', crashing)],
    ['rolled_back', 'rolled_back', await withVolume(rig, '/data', crashing)],
  ] as const) {
    const { generation } = controlPlane.update(id, desire);
    await controlPlane.reported(id, phaseIs(generation, phase));
    await process.kill9();
    process = rig.agent(quickly);
    await controlPlane.reported(id, (item) => phaseIs(generation, end)(item) && isRunning(item));
    await settled(rig, id);
    t.same(await kept(rig, id), ['of the image', 'written'], `killed at ${phase}, then ${end}`);
  }
  const { Id } = await engine.only(id);
  controlPlane.desire({ id, desired: 'removed' });
  await until('its removal', async () => (await engine.call('GET', `/containers/${Id}/json`)).status === 404);
  await process.kill9();
  process = rig.agent(quickly);
  await until('no volume', async () => (await engine.volumes(id)).length === 0);
  await process.stop();
});

t.test('the volumes of a copy of before 0.2.0, which have no labels', async (t) => {
  const rig = await startRig(t);
  const { controlPlane, engine } = rig;
  let process = rig.agent(quickly);
  const start = async (): Promise<{ readonly id: ContainerId; readonly volume: string }> => {
    const id = await running(rig);
    await process.kill9();
    const { Id, Name, Config, HostConfig, Mounts } = await engine.only(id);
    await engine.call('DELETE', `/containers/${Id}?force=1&v=1`);
    for (const { Name: volume } of Mounts) await engine.call('DELETE', `/volumes/${volume}`);
    const { Mounts: _, ...rest } = HostConfig;
    const { Labels } = Config;
    const body = { Image: Labels[labels.image], Labels, HostConfig: rest };
    const { status } = await engine.call('POST', `/containers/create?name=${Name.slice(1)}`, body);
    t.equal(status, 201);
    process = rig.agent(quickly);
    await until('it runs', async () => (await engine.containers(id))[0]?.State.Running === true);
    await write(rig, id, 'written');
    const volume = (await engine.only(id)).Mounts[0]?.Name ?? '';
    t.match(volume, /^[0-9a-f]{64}$/, 'the engine has made it');
    return { id, volume };
  };
  const isThere = async (volume: string): Promise<boolean> =>
    (await engine.call('GET', `/volumes/${volume}`)).status === 200;

  await t.test('an update has them, and so has the next', async (t) => {
    const { id, volume } = await start();
    for (const A of ['1', '2']) {
      await updated(rig, id, { env: { A } });
      t.same(await kept(rig, id), ['of the image', 'written']);
      t.equal((await engine.only(id)).Mounts[0]?.Name, volume);
    }
    controlPlane.desire({ id, desired: 'removed' });
    await controlPlane.reported(id, ({ gone }) => gone);
    t.notOk(await isThere(volume), 'it goes with the container');
  });

  await t.test('a copy that is removed before the next is made', async (t) => {
    const { id, volume } = await start();
    const { Id } = await engine.only(id);
    controlPlane.desire({ id, placement: 2 });
    await until('it is removed', async () => (await engine.call('GET', `/containers/${Id}/json`)).status === 404);
    await process.kill9();
    process = rig.agent(quickly);
    await until('another copy', async () => (await engine.containers(id))[0]?.State.Running === true);
    t.same(await kept(rig, id), ['of the image', 'written']);
    controlPlane.drop(id);
    controlPlane.erase(id);
    await until('no volume', async () => !(await isThere(volume)));
  });
  await process.stop();
});

t.test('a container that leaves its host', async (t) => {
  const rig = await startRig(t);
  const { controlPlane, engine } = rig;
  let process = rig.agent(quickly);
  const id = await running(rig);
  await write(rig, id, 'written');
  const gone = () => until('no copy', async () => (await engine.containers(id)).length === 0);
  const left = (count: number) => until(`${count} left`, () => controlPlane.beats().at(-1)?.volumes_left === count);

  controlPlane.drop(id);
  await gone();
  await left(1);
  t.equal((await engine.volumes(id)).length, 1, 'its volume stays');
  t.match(await process.metrics(), /longshore_agent_volumes_left 1/);
  t.match(await process.logged('volumes_left'), { container: id, days: limits.volumesLeftMs / 86_400_000 });
  await process.kill9();
  process = rig.agent(quickly);
  await left(1);

  await t.test('it comes back, and finds what it left', async (t) => {
    controlPlane.desire({ ...(await withVolume(rig, '/data')), id, placement: 3 });
    await until('it runs', async () => (await engine.containers(id))[0]?.State.Running === true);
    t.same(await kept(rig, id), ['of the image', 'written']);
    await left(0);
  });

  await t.test('deleted elsewhere: what it left goes at once', async () => {
    controlPlane.drop(id);
    await gone();
    await left(1);
    controlPlane.erase(id);
    await until('no volume', async () => (await engine.volumes(id)).length === 0);
    await left(0);
  });
  await process.stop();
});
