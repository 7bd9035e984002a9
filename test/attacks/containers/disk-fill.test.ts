/**
 * A tenant's container writes until the host's disk is full: into its own layer, or into a volume
 * that its image names. The agent must stop it at its limit, not start it again while it is over,
 * and leave its neighbours alone. What it wrote stays; unused images are removed first.
 */
import t from 'tap';
import { pushTestImage } from '../../../dev/servers/registry.ts';
import { startRig, steady } from '../../host-agent/support/rig.ts';
import { until } from '../../support/until.ts';

const MiB = 1024 * 1024;
const limit = 8 * MiB;
const fill = (where: string, then: string = steady): string =>
  `n=0; while [ $n -lt 16 ]; do dd if=/dev/zero of=${where}/$n bs=1048576 count=1 2>/dev/null; n=$((n+1)); done; echo full; ${then}`;
/** Begins to write when it gets SIGUSR1. */
const fillWhenTold = (where: string): string =>
  `trap 'told=1' USR1; until [ "$told" ]; do sleep 1 & wait $!; done; echo told; ${fill(where)}`;

t.test('disks', async (t) => {
  const { controlPlane, engine, registry, agent, script } = await startRig(t);
  const long = '1d';
  const calm = { IMAGES_HIGH_PERCENT: 'off', DISK_PRESSURE_PERCENT: 'off', RESTART_BACKOFF_MAX: long };
  const repository = 'longshore/attack-disk';
  const push = async (tag: string, image: object) => {
    await pushTestImage(registry, { repository, tag, ...image });
    return { registry, repository, tag };
  };
  const isRunning = ({ observation }: { observation: { status: string } }) => observation.status === 'running';
  const evicted = async (id: Parameters<typeof controlPlane.reported>[0]): Promise<void> => {
    const { observation } = await controlPlane.reported(id, (item) => item.observation.reason === 'disk_limit');
    t.match(observation.message, new RegExp(`wrote \\d+ MiB.*limit is ${limit / MiB} MiB`));
  };

  /** Checks that it goes down, and stays down over some measurements. */
  const stays = async (id: Parameters<typeof engine.only>[0], dockerId: string): Promise<void> => {
    await controlPlane.reported(id, ({ observation }) => observation.status === 'failed');
    const beats = controlPlane.beats().length;
    await until('some time', () => controlPlane.beats().length > beats + 5 || undefined);
    t.match(await engine.only(id), { Id: dockerId, State: { Running: false } });
  };

  const tell = (dockerId: string): Promise<unknown> =>
    until('the container to hear the test', async () => {
      const { status, text } = await engine.call('GET', `/containers/${dockerId}/logs?stdout=1`);
      if (status === 404 || text.includes('told')) return true;
      await engine.call('POST', `/containers/${dockerId}/kill?signal=USR1`);
      return undefined;
    });

  // These containers end before the first measurement.
  const careless = agent({ ...calm, DISK_INTERVAL: long, RESTART_BACKOFF_MIN: long });
  const ended = controlPlane.desire({ ...(await script('disk-ended', fill('/tmp', 'exit 0'))), disk_bytes: limit });
  await controlPlane.reported(ended.id, ({ observation }) => observation.reason === 'exited');
  const left = (await engine.only(ended.id)).Id;
  await careless.stop();
  const process = agent({ ...calm, DISK_INTERVAL: '200ms' });

  await t.test('a container that filled its layer and ended does not start again', async () => {
    await evicted(ended.id);
    await stays(ended.id, left);
    controlPlane.desire({ id: ended.id, desired: 'removed' });
  });

  const neighbour = controlPlane.desire({ ...(await script('disk-neighbour', steady)), disk_bytes: limit });
  await controlPlane.reported(neighbour.id, isRunning);
  const before = await engine.only(neighbour.id);

  await t.test('a container that fills its layer is stopped', async (t) => {
    const { id } = controlPlane.desire({ ...(await script('disk-layer', fillWhenTold('/tmp'))), disk_bytes: limit });
    await controlPlane.reported(id, isRunning);
    const first = (await engine.only(id)).Id;
    await tell(first);
    await evicted(id);
    await stays(id, first);
    controlPlane.desire({ id, desired: 'removed' });
    await controlPlane.reported(id, ({ gone }) => gone);
    t.same(await engine.containers(id), []);
  });

  await t.test('a container that fills a volume of its image is stopped, and keeps it', async (t) => {
    const image = await push('volume', { cmd: ['sh', '-c', fillWhenTold('/data')], volumes: ['/data'] });
    const { id } = controlPlane.desire({ ...image, disk_bytes: limit });
    await controlPlane.reported(id, isRunning);
    const { Id, Mounts } = await engine.only(id);
    await tell(Id);
    await evicted(id);
    await stays(id, Id);
    // The engine refuses while another count is under way: that of the agent.
    const text = await until('the engine to count its volumes', async () => {
      const { status, text } = await engine.call('GET', '/system/df?type=volume');
      return status === 200 ? text : undefined;
    });
    const { Volumes } = JSON.parse(text) as { Volumes: { Name: string; UsageData: { Size: number } }[] };
    const kept = Volumes.find(({ Name }) => Name === Mounts[0]?.Name);
    t.ok(Number(kept?.UsageData.Size) > limit, 'what it wrote is there');

    await t.test('it starts again once its limit is raised, with what it wrote', async (t) => {
      // Another limit is no other generation: nobody has started it.
      const { restart_count } = (await controlPlane.reported(id, () => true)).observation;
      controlPlane.raise(id, 64 * MiB);
      await controlPlane.reported(id, isRunning);
      t.match(await engine.only(id), { Id, Mounts: [{ Name: kept?.Name }] });
      t.equal(controlPlane.last(id)?.observation.restart_count, restart_count, 'that is no crash');
    });
    controlPlane.desire({ id, desired: 'removed' });
    await controlPlane.reported(id, ({ gone }) => gone);
  });

  await t.test('a container from before the limits keeps running while the disk has room', async (t) => {
    const { id } = controlPlane.desire(await script('disk-old', fill('/tmp')));
    await controlPlane.reported(id, isRunning);
    const { Id } = await engine.only(id);
    await until(
      'a full layer',
      async () => (await engine.call('GET', `/containers/${Id}/logs?stdout=1`)).text.includes('full') || undefined,
    );
    // The agent measures it several times meanwhile.
    const capped = controlPlane.desire({ ...(await script('disk-again', fill('/tmp'))), disk_bytes: limit });
    await evicted(capped.id);
    t.equal((await engine.only(id)).Id, Id);
    controlPlane.desire({ id: capped.id, desired: 'removed' });
  });

  const after = await engine.only(neighbour.id);
  t.same(after.State, before.State, 'the neighbour kept running');
  await process.stop();

  await t.test('unused images that the agent pulled are removed to make room, and no others', async (t) => {
    const cmd = ['sh', '-c', steady];
    const idle = await push('idle', { cmd, env: { IMAGE: 'idle' } });
    const foreign = await push('foreign', { cmd, env: { IMAGE: 'foreign' } });
    const name = ({ registry, repository, tag }: typeof idle) => `${registry}/${repository}:${tag}`;
    await engine.call('POST', `/images/create?fromImage=${encodeURIComponent(name(foreign))}`);
    const second = agent({
      DISK_INTERVAL: '200ms',
      IMAGES_HIGH_PERCENT: '0',
      IMAGES_LOW_PERCENT: '0',
      DISK_PRESSURE_PERCENT: 'off',
    });
    const { id } = controlPlane.desire(idle);
    await controlPlane.reported(id, isRunning);
    t.equal((await engine.call('GET', `/images/${name(idle)}/json`)).status, 200, 'an image in use stays');
    controlPlane.desire({ id, desired: 'removed' });
    await controlPlane.reported(id, ({ gone }) => gone);
    controlPlane.drop(id);
    await until(
      'the removal of the idle image',
      async () => (await engine.call('GET', `/images/${name(idle)}/json`)).status === 404 || undefined,
    );
    t.equal(
      (await engine.call('GET', `/images/${name(foreign)}/json`)).status,
      200,
      'an image that another program pulled stays',
    );
    t.match(await second.metrics(), /longshore_agent_images_removed_total [1-9]/);
    await second.stop();
  });
});
