/**
 * A real registry behind a proxy that trickles: it holds up its own tenant alone, its progress is
 * reported, and layers that an engine had before it was killed are not fetched again.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startPrivateEngine } from '../../../../dev/servers/engine.ts';
import { limits } from '../../../../schemas/limits.ts';
import { pushLayers, slowRegistry } from '../../../host-agent/support/layers.ts';
import { startRig, steady } from '../../../host-agent/support/rig.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { skipWithoutPrivateEngine } from '../../../support/servers.ts';
import { until } from '../../../support/until.ts';

const cmd = ['sh', '-c', steady];
const KiB = 1024;
const isRunning = ({ observation }: { observation: { status: string } }) => observation.status === 'running';

t.test('a slow registry of one tenant holds up nobody else', async (t) => {
  const { controlPlane, registry, agent, script } = await startRig(t);
  const slow = await slowRegistry(t, registry, () => ({ bytes: KiB, everyMs: 50 }));
  const names = Array.from({ length: limits.pullsPerTenant + 1 }, (_, index) => `longshore/slow-${index}`);
  // More layers than the engine fetches at a time by default.
  const layers = 5;
  const sizesOf = (bytes: number) => Array<number>(layers).fill(bytes);
  // A layer takes more than three minutes, longer than all that is tried meanwhile.
  const sizes = sizesOf(4096 * KiB);
  for (const repository of names) await pushLayers(registry, { repository, tag: '1', sizes, cmd });
  const quick = await script('quick', steady);
  agent();

  const trickling = controlPlane.desireAll(
    names.map((repository) => ({ tenant: 'slow', registry: slow.address, repository, tag: '1' })),
  );
  type One = (typeof trickling)[number];
  const hasBegun = ({ id }: One): boolean =>
    controlPlane.pulls(id).some(({ bytes, total }) => bytes > 8 * KiB && (total ?? 0) > layers * 4096 * KiB);
  let pulled: readonly One[] = [];
  const waiting = (): One[] => trickling.filter((one) => !pulled.includes(one));
  await t.test('its progress is told', async (t) => {
    // The size of a layer is known when it begins to arrive.
    await until(
      () => `bytes, and the sizes of all layers: ${trickling.map(({ id }) => controlPlane.pulls(id).length).join()}`,
      () => trickling.filter(hasBegun).length === limits.pullsPerTenant,
    );
    pulled = trickling.filter(hasBegun);
    for (const { id, generation } of pulled) {
      t.match(controlPlane.pulls(id).at(-1), { tenant: 'slow', generation, layers: layers + 1 });
    }
    for (const { id } of waiting()) t.same(controlPlane.pulls(id), [], 'one waits for a place');
  });

  await t.test('others are pulled meanwhile', async (t) => {
    for (const tenant of ['a', 'b', 'c']) {
      const repository = `longshore/of-${tenant}`;
      await pushLayers(registry, { repository, tag: '1', sizes: sizesOf(64 * KiB), cmd });
      const { id } = controlPlane.desire({ tenant, registry, repository, tag: '1' });
      await controlPlane.reported(id, isRunning);
    }
    // From an image that the slow tenant waits for, too.
    const [first, other] = controlPlane.desireAll([
      { tenant: 'slow', ...quick },
      { tenant: 'd', ...quick },
    ]);
    await controlPlane.reported(other?.id as One['id'], isRunning);
    await controlPlane.reported(first?.id as One['id'], isRunning);
    for (const { id } of trickling) t.same(controlPlane.statuses(id).at(-1), 'pulling');
  });

  await t.test('a pull that is given up frees its place', async () => {
    slow.setPace(() => 'fast');
    for (const { id } of pulled) controlPlane.desire({ id, desired: 'removed' });
    for (const { id } of pulled) await controlPlane.reported(id, ({ gone }) => gone);
    for (const { id } of waiting()) await controlPlane.reported(id, isRunning);
  });
  t.same(controlPlane.faults(), []);
});

t.test('an engine that was killed keeps the layers that it had', { skip: skipWithoutPrivateEngine }, async (t) => {
  const dir = temporaryFolder(t);
  const engine = await startPrivateEngine({ dir, firewall: true, throwaway: true });
  t.teardown(() => engine.stop());
  const { controlPlane, registry, agent } = await startRig(t, engine.host);
  const repository = 'longshore/killed';
  const image = await pushLayers(registry, { repository, tag: '1', sizes: [64 * KiB, 64 * KiB, 512 * KiB], cmd });
  const last = image.layers.at(-1)?.digest;
  const slow = await slowRegistry(t, registry, (digest) => (digest === last ? { bytes: KiB, everyMs: 50 } : 'fast'));
  agent();
  const { id } = controlPlane.desire({ registry: slow.address, repository, tag: '1' });
  // The folder in which the engine notes the layers that it has unpacked.
  const known = (): string[] => {
    const [driver = ''] = readdirSync(join(dir, 'data/image'));
    return readdirSync(join(dir, 'data/image', driver, 'distribution/diffid-by-digest/sha256'));
  };
  await until(
    () => `all layers but the last: ${slow.asked.join()}`,
    () => known().length >= image.layers.length - 1,
  );
  await engine.kill9();
  await until('the end of its requests', () => slow.open() === 0);
  slow.asked.length = 0;
  slow.setPace(() => 'fast');
  await engine.start();
  await controlPlane.reported(id, isRunning);
  t.same(
    slow.asked.filter((digest) => image.layers.some((layer) => layer.digest === digest)),
    [last],
  );
});
