/**
 * A real registry behind a proxy that trickles: it holds up its own tenant alone, its progress is
 * told, and what an engine has fetched before it was killed is not fetched again.
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
  const sizes = Array<number>(5).fill(512 * KiB);
  for (const repository of names) await pushLayers(registry, { repository, tag: '1', sizes, cmd });
  const quick = await script('quick', steady);
  agent();

  const trickling = controlPlane.desireAll(
    names.map((repository) => ({ tenant: 'slow', registry: slow.address, repository, tag: '1' })),
  );
  const pulled = trickling.slice(0, limits.pullsPerTenant);
  await t.test('its progress is told', async (t) => {
    for (const { id, generation } of pulled) {
      const told = await until('bytes of each layer', () =>
        controlPlane.pulls(id).find(({ bytes }) => bytes > 8 * KiB),
      );
      t.match(told, { tenant: 'slow', generation, layers: sizes.length + 1 });
      t.ok((told.total ?? 0) > 5 * 512 * KiB, 'the sizes of all layers are known');
    }
    t.same(controlPlane.pulls(trickling.at(-1)?.id as (typeof trickling)[0]['id']), [], 'one waits for a place');
  });

  await t.test('others are pulled meanwhile', async (t) => {
    for (const tenant of ['a', 'b', 'c']) {
      const image = await pushLayers(registry, { repository: `longshore/of-${tenant}`, tag: '1', sizes, cmd });
      const { id } = controlPlane.desire({ tenant, registry, repository: image.repository, tag: '1' });
      await controlPlane.reported(id, isRunning);
    }
    // From an image that the slow tenant waits for, too.
    const [first, other] = controlPlane.desireAll([
      { tenant: 'slow', ...quick },
      { tenant: 'd', ...quick },
    ]);
    await controlPlane.reported(other?.id as (typeof trickling)[0]['id'], isRunning);
    await controlPlane.reported(first?.id as (typeof trickling)[0]['id'], isRunning);
    for (const { id } of trickling) t.same(controlPlane.statuses(id).at(-1), 'pulling');
  });

  await t.test('a pull that is given up frees its place', async () => {
    slow.setPace(() => 'fast');
    for (const { id } of pulled) controlPlane.desire({ id, desired: 'removed' });
    for (const { id } of pulled) await controlPlane.reported(id, ({ gone }) => gone);
    await controlPlane.reported(trickling.at(-1)?.id as (typeof trickling)[0]['id'], isRunning);
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
  const images = join(dir, 'data/image');
  await until('all layers but the last', () => {
    const [driver = ''] = readdirSync(images);
    return readdirSync(join(images, driver, 'layerdb/sha256')).length === image.layers.length - 1;
  });
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
