import t from 'tap';
import {
  diskLimitOf,
  evictionsOf,
  fillOf,
  isPressed,
  restMs,
  wroteTooMuch,
  type DiskUse,
} from '../../host-agent/disk-plan.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';

const use = (name: string, usedBytes: number, isEnforced = true): DiskUse => ({
  id: name as ContainerId,
  dockerId: name,
  usedBytes,
  limitBytes: 100,
  isEnforced,
});
const old = (name: string, usedBytes: number) => use(name, usedBytes, false);

for (const [name, uses, pressed, expected] of [
  ['at its limit → stays', [use('a', 100)], false, []],
  ['over it → goes', [use('a', 101), use('b', 99)], false, ['a']],
  ['several → the largest first', [use('a', 101), use('b', 300), use('c', 200)], false, ['b', 'c', 'a']],
  ['without an enforced limit → stays', [old('a', 900)], false, []],
  ['and goes under pressure, one at a time', [old('a', 200), old('b', 900)], true, ['b']],
  ['pressure alone evicts nobody who keeps to the limit', [use('a', 100), old('b', 100)], true, []],
  ['those over an enforced limit go with it', [use('a', 101), old('b', 900)], true, ['b', 'a']],
] as const) {
  t.test(name, (t) => {
    t.same(
      evictionsOf(uses, pressed).map(({ dockerId }) => dockerId),
      expected,
    );
    t.end();
  });
}

t.test('how full a file system is', (t) => {
  t.equal(fillOf({ blocks: 200, bavail: 50, files: 100, ffree: 90 }).usedPercent, 75);
  t.equal(fillOf({ blocks: 200, bavail: 150, files: 100, ffree: 5 }).usedPercent, 95, 'inodes count');
  t.equal(fillOf({ blocks: 200, bavail: 150, files: 0, ffree: 0 }).usedPercent, 25, 'where there are any');
  t.end();
});

t.test('pressure does not flap', (t) => {
  t.notOk(isPressed({ usedPercent: 89 }, false, 90));
  t.ok(isPressed({ usedPercent: 90 }, false, 90));
  t.ok(isPressed({ usedPercent: 89 }, true, 90));
  t.notOk(isPressed({ usedPercent: 89 - limits.diskReliefPercent }, true, 90));
  t.end();
});

t.test('a slow measurement is repeated less often', (t) => {
  t.equal(restMs(10, 30_000), 30_000);
  t.equal(restMs(60_000, 30_000), 540_000);
  t.end();
});

t.test('a container’s limit is the lesser of what was declared and what the host allows', (t) => {
  t.same(diskLimitOf({ disk_bytes: 50 }, 100), { bytes: 50, isEnforced: true });
  t.same(diskLimitOf({ disk_bytes: 500 }, 100), { bytes: 100, isEnforced: true });
  t.same(diskLimitOf({}, 100), { bytes: 100, isEnforced: false }, 'declared before there were limits');
  t.match(wroteTooMuch(3 * 1024 ** 2, 2 ** 20), /wrote 3 MiB.*limit is 1 MiB/);
  t.end();
});
