/** Reactions to the fill level of the disk: the test's own disk, with changing thresholds. */
import { tmpdir } from 'node:os';
import { setImmediate as settled } from 'node:timers/promises';
import t from 'tap';
import { createDiskWatch, type DiskWatchParts } from '../../../host-agent/disk/watch.ts';
import { createFaults } from '../../../host-agent/faults.ts';
import { limits } from '../../../schemas/limits.ts';
import { quietLog } from '../../actors/support.ts';

const intervalMs = 60_000;

function watching(more: Partial<DiskWatchParts['settings']> = {}) {
  const state = { nowMs: 0, isEngineUp: true, rootDir: tmpdir() as string | undefined };
  const settings = {
    DISK_INTERVAL: intervalMs,
    DISK_PRESSURE_PERCENT: Infinity,
    IMAGES_HIGH_PERCENT: Infinity,
    IMAGES_LOW_PERCENT: 0,
    IMAGES_UNUSED: 0,
    ...more,
  };
  const collections: { needsMore: () => Promise<boolean>; end: (error?: Error) => Promise<void> }[] = [];
  const unused: number[] = [];
  const faults = createFaults(quietLog);
  const watch = createDiskWatch({
    isEngineUp: () => state.isEngineUp,
    rootDir: () => state.rootDir,
    images: {
      collectUnused: (ms) => {
        unused.push(ms);
        return Promise.resolve();
      },
      collect: (needsMore) =>
        new Promise((resolve, reject) => {
          const end = async (error?: Error) => {
            if (error === undefined) resolve();
            else reject(error);
            await settled();
          };
          collections.push({ needsMore, end });
        }),
    },
    settings,
    faults,
    steadyMs: () => state.nowMs,
    log: quietLog,
  });
  const lookAfter = async (ms: number) => {
    state.nowMs += ms;
    await watch.look();
    return collections.length;
  };
  return { watch, state, settings, collections, unused, faults, lookAfter };
}

t.test('a disk that cannot be seen is not under pressure, and nothing is collected', async (t) => {
  const { watch, state, collections, faults, lookAfter } = watching({
    DISK_PRESSURE_PERCENT: 0,
    IMAGES_HIGH_PERCENT: 0,
  });
  t.same(watch.pressure(), { isPressed: false, atMs: Number.NEGATIVE_INFINITY }, 'before the first look');
  for (const rootDir of [undefined, '/nowhere/at/all']) {
    state.rootDir = rootDir;
    await lookAfter(10);
    t.same(
      [watch.usedPercent(), watch.freeBytes(), watch.pressure(), collections.length],
      [null, null, { isPressed: false, atMs: state.nowMs }, 0],
    );
  }
  state.rootDir = tmpdir();
  await lookAfter(10);
  t.same([watch.pressure().isPressed, collections.length, faults.list().length], [true, 1, 1]);
  t.ok((watch.usedPercent() ?? -1) >= 0);
  t.ok((watch.freeBytes() ?? 0) > 0);
  state.rootDir = undefined;
  await lookAfter(10);
  t.same(
    [watch.usedPercent(), watch.freeBytes(), watch.pressure().isPressed, faults.list()],
    [null, null, false, []],
    'nor any more',
  );
});

t.test('pressure is a fault of the host until it is over', async (t) => {
  const { watch, settings, faults, lookAfter } = watching();
  await lookAfter(10);
  t.same([watch.pressure(), faults.list()], [{ isPressed: false, atMs: 10 }, []]);
  settings.DISK_PRESSURE_PERCENT = 0;
  await lookAfter(10);
  await lookAfter(10);
  t.same(watch.pressure(), { isPressed: true, atMs: 30 }, 'as of the last look');
  t.match(faults.list(), [{ kind: 'disk_pressure', message: /% full/ }]);
  settings.DISK_PRESSURE_PERCENT = Infinity;
  await lookAfter(10);
  t.same([watch.pressure().isPressed, faults.list()], [false, []]);
});

t.test('one collection at a time, and a rest behind each: nine times as long, an interval at least', async (t) => {
  const { collections, lookAfter } = watching({ IMAGES_HIGH_PERCENT: 0 });
  t.equal(await lookAfter(0), 1);
  t.equal(await lookAfter(1000), 1, 'while it runs');
  await collections[0]?.end();
  t.equal(await lookAfter(intervalMs - 1), 1);
  t.equal(await lookAfter(1), 2, 'an interval after its end');
  await lookAfter(20_000);
  await collections[1]?.end(new Error('the engine went away'));
  t.equal(await lookAfter(9 * 20_000 - 1), 2, 'one that failed rests too');
  t.equal(await lookAfter(1), 3);
});

t.test('none while the engine is away, and none below the high threshold', async (t) => {
  const { state, settings, lookAfter } = watching({ IMAGES_HIGH_PERCENT: 0 });
  state.isEngineUp = false;
  t.equal(await lookAfter(10), 0);
  state.isEngineUp = true;
  settings.IMAGES_HIGH_PERCENT = Infinity;
  t.equal(await lookAfter(10), 0);
  settings.IMAGES_HIGH_PERCENT = 0;
  t.equal(await lookAfter(10), 1);
});

t.test('a collection goes on until the disk is below the low threshold, or cannot be seen', async (t) => {
  const { state, settings, collections, lookAfter } = watching({ IMAGES_HIGH_PERCENT: 0, IMAGES_LOW_PERCENT: -1 });
  await lookAfter(0);
  const needsMore = () => collections[0]?.needsMore();
  t.equal(await needsMore(), true);
  settings.IMAGES_LOW_PERCENT = 100;
  t.equal(await needsMore(), false);
  settings.IMAGES_LOW_PERCENT = -1;
  state.rootDir = undefined;
  t.equal(await needsMore(), false);
});

t.test('images unused for long are collected now and then, while the engine is up', async (t) => {
  const { state, settings, unused, collections, lookAfter } = watching({ IMAGES_UNUSED: 3 * 3_600_000 });
  const look = async (ms: number) => {
    await lookAfter(ms);
    await settled();
    return unused.length;
  };
  t.equal(await look(limits.imagesUnusedLookMs - 1), 0, 'not at once: the agent may not know what is wanted');
  t.equal(await look(1), 1);
  t.same(unused, [3 * 3_600_000]);
  t.equal(await look(limits.imagesUnusedLookMs - 1), 1);
  state.isEngineUp = false;
  t.equal(await look(1), 1);
  state.isEngineUp = true;
  state.rootDir = undefined;
  t.equal(await look(1), 2, 'on an engine whose disk cannot be seen, too');
  state.rootDir = tmpdir();
  settings.IMAGES_HIGH_PERCENT = 0;
  t.equal(await look(limits.imagesUnusedLookMs), 2, 'a full disk goes first');
  t.equal(collections.length, 1);
  settings.IMAGES_HIGH_PERCENT = Infinity;
  t.equal(await look(1), 2, 'one collection at a time');
  await collections[0]?.end();
  t.equal(await look(1), 3);
  settings.IMAGES_UNUSED = 0;
  t.equal(await look(limits.imagesUnusedLookMs), 3, '0: never');
});
