import t from 'tap';
import fc from 'fast-check';
import {
  attempted,
  diskLimitOf,
  dueAtMs,
  evictionsOf,
  evictionWords,
  fillOf,
  isAwaited,
  isPressed,
  isUnknown,
  nextToMeasure,
  restMs,
  spentMs,
  unmeasuredWords,
  untried,
  useOf,
  type DiskUse,
  type Measured,
  type MeasuredVolumes,
  type Turn,
  diskReliefMs,
  diskReliefPercent,
} from '../../../host-agent/disk/plan.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';

const use = (name: string, usedBytes: number | null, isEnforced = true): DiskUse => ({
  id: name as ContainerId,
  dockerId: name,
  usedBytes,
  limitBytes: 100,
  isEnforced,
});
const old = (name: string, usedBytes: number | null) => use(name, usedBytes, false);

for (const [name, uses, over, underPressure] of [
  ['at its limit → none', [use('a', 100)], [], []],
  ['over its limit → evicted', [use('a', 101), use('b', 99)], ['a'], []],
  ['several → the largest first', [use('a', 101), use('b', 300), use('c', 200)], ['b', 'c', 'a'], []],
  [
    'without an enforced limit → only under pressure, the largest first',
    [old('a', 200), old('b', 900)],
    [],
    ['b', 'a'],
  ],
  ['pressure evicts no container within its limit', [use('a', 100), old('b', 100)], [], []],
  ['unmeasurable → only under pressure, before all others', [old('a', 900), use('b', null)], [], ['b', 'a']],
  ['unmeasurable without an enforced limit → likewise', [old('a', null), use('b', 101)], ['b'], ['a']],
] as const) {
  t.test(name, (t) => {
    const evictions = evictionsOf(uses);
    t.same(
      evictions.over.map(({ dockerId }) => dockerId),
      over,
    );
    t.same(
      evictions.underPressure.map(({ dockerId }) => dockerId),
      underPressure,
    );
    t.end();
  });
}

const container = (dockerId: string, changes: Partial<Measured> = {}): Measured => ({
  id: dockerId as ContainerId,
  dockerId,
  tenant: 'acme',
  written: null,
  attempts: untried,
  ...changes,
});
const written = (layerBytes: number, ...volumes: string[]) => ({ layerBytes, volumes });
const endedAt = (endedAtMs: number, tookMs = 0) => attempted(untried, 'measured', endedAtMs - tookMs, endedAtMs);
const turn = (changes: Partial<Turn> = {}): Turn => ({
  nowMs: 100_000,
  intervalMs: 30_000,
  isPressed: false,
  busy: new Set(),
  spentMs: () => 0,
  ...changes,
});
const slow = { spentMs: (tenant: string) => (tenant === 'slow' ? 60_000 : 5) };

for (const [name, containers, changes, expected] of [
  ['a container never measured is due', [container('a')], {}, 'a'],
  ['one measured a moment ago is not', [container('a', { attempts: endedAt(90_000) })], {}, undefined],
  ['one that took long is due later', [container('a', { attempts: endedAt(60_000, 10_000) })], {}, undefined],
  [
    'and delays no other',
    [container('a', { attempts: endedAt(60_000, 10_000) }), container('b', { attempts: endedAt(60_000) })],
    {},
    'b',
  ],
  [
    'the longest due first',
    [container('a', { attempts: endedAt(2000) }), container('b', { attempts: endedAt(1000) })],
    {},
    'b',
  ],
  ['one of a tenant at a time', [container('a')], { busy: new Set(['acme']) }, undefined],
  ['the tenant that took the least time comes first', [container('a', { tenant: 'slow' }), container('b')], slow, 'b'],
  [
    'even if the containers of others are due for longer',
    [container('a', { tenant: 'slow' }), container('b', { attempts: endedAt(60_000) })],
    slow,
    'b',
  ],
  [
    'under pressure the largest first',
    [
      container('a', { written: written(1), attempts: endedAt(1000) }),
      container('b', { written: written(2), attempts: endedAt(2000) }),
    ],
    { isPressed: true },
    'b',
  ],
  [
    'containers with unknown use come first',
    [container('a', { written: written(1), attempts: endedAt(1000) }), container('b')],
    { isPressed: true },
    'b',
  ],
] as const) {
  t.test(name, (t) => {
    t.equal(nextToMeasure(containers, turn(changes))?.dockerId, expected);
    t.end();
  });
}

t.test('the next is the first in the order of tenants, then of urgency', (t) => {
  const bytes = fc.option(fc.nat(3), { nil: null });
  const some = fc.record({ tenant: fc.constantFrom('a', 'b', 'c'), endedAtMs: fc.nat(9), bytes });
  const spent = fc.record({ a: fc.nat(2), b: fc.nat(2), c: fc.nat(2) });
  fc.assert(
    fc.property(fc.array(some), spent, fc.boolean(), (given, spentMs, isPressed) => {
      const containers = given.map(({ tenant, endedAtMs, bytes }, n) =>
        container(String(n), {
          tenant,
          written: bytes === null ? null : written(bytes),
          attempts: endedAtMs === 0 ? untried : endedAt(endedAtMs),
        }),
      );
      const asked = turn({
        nowMs: 8,
        intervalMs: 2,
        isPressed,
        busy: new Set(['c']),
        spentMs: (tenant) => spentMs[tenant as 'a'],
      });
      const size = ({ written }: Measured) => written?.layerBytes ?? Infinity;
      const ended = ({ attempts }: Measured) => attempts.endedAtMs ?? -1000;
      const due = containers.filter(({ tenant, attempts }) => tenant !== 'c' && (attempts.endedAtMs ?? 0) <= 6);
      const bySize = (left: Measured, right: Measured) => (size(left) === size(right) ? 0 : size(right) - size(left));
      const byAge = (left: Measured, right: Measured) => ended(left) - ended(right);
      const byUrgency = isPressed ? bySize : byAge;
      const [first] = due.toSorted(
        (left, right) => asked.spentMs(left.tenant) - asked.spentMs(right.tenant) || byUrgency(left, right),
      );
      return nextToMeasure(containers, asked) === first;
    }),
  );
  t.end();
});

t.test('time spent on a tenant halves with time', (t) => {
  t.equal(spentMs({ ms: 800, atMs: 0 }, 0), 800);
  t.equal(spentMs({ ms: 800, atMs: 0 }, 2 * limits.diskIntervalMs), 200);
  t.end();
});

t.test('one late measurement, or a repeated refusal, makes the use unknown', (t) => {
  const failed = attempted(untried, 'failed', 0, 1);
  t.notOk(isUnknown(untried));
  t.notOk(isUnknown(failed));
  t.ok(isUnknown(attempted(attempted(failed, 'failed', 1, 2), 'failed', 2, 3)));
  const late = attempted(untried, 'late', 0, 60_000);
  t.ok(isUnknown(late));
  t.equal(dueAtMs(late, 30_000), 600_000);
  t.notOk(isUnknown(attempted(late, 'measured', 0, 1)), 'measured again');
  t.end();
});

t.test('a container uses its layer and its volumes', (t) => {
  const volumes = (bytes: Record<string, number>, outcome: 'measured' | 'late' | 'failed'): MeasuredVolumes => ({
    bytes: new Map(Object.entries(bytes)),
    attempts: attempted(untried, outcome, 0, 1),
  });
  const limit = { bytes: 100, isEnforced: true };
  const used = (given: Partial<Measured>, of: MeasuredVolumes) => useOf(container('a', given), of, limit)?.usedBytes;
  const v5 = volumes({ v: 5 }, 'measured');
  t.equal(used({}, v5), undefined, 'not known yet');
  t.equal(used({ written: written(2, 'v') }, v5), 7, 'its layer and its volumes');
  t.equal(used({ written: written(2, 'v'), attempts: attempted(untried, 'late', 0, 1) }, v5), null, 'not in time');
  t.equal(used({ written: written(2, 'v'), attempts: attempted(untried, 'failed', 0, 1) }, v5), 7, 'as it was');
  t.equal(used({ written: written(2, 'w') }, v5), 2, 'a volume that is not measured yet');
  t.equal(
    used({ written: written(2, 'w') }, volumes({ v: 5 }, 'late')),
    null,
    'a volume that was never measured in time',
  );
  t.equal(
    used({ written: written(2, 'v') }, volumes({ v: 5 }, 'late')),
    7,
    'the volume of another container takes long',
  );
  t.end();
});

t.test('an eviction under pressure is awaited until its stop and a new look at the disk', (t) => {
  const relief = { dockerId: 'a', atMs: 1000, downAtMs: null };
  const seenAt = (atMs: number) => ({ isPressed: true, atMs });
  t.ok(isAwaited(relief, seenAt(2000), 2000));
  t.notOk(isAwaited(relief, seenAt(2000), 1000 + diskReliefMs), 'not for ever');
  t.ok(isAwaited({ ...relief, downAtMs: 3000 }, seenAt(2000), 3000));
  t.notOk(isAwaited({ ...relief, downAtMs: 3000 }, seenAt(3001), 3001));
  t.end();
});

t.test('the fault names containers within its length limit', (t) => {
  const none: MeasuredVolumes = { bytes: new Map(), attempts: untried };
  const ids = Array.from(
    { length: 500 },
    (_, n) => `0190a000-0000-7000-8000-${String(n).padStart(12, '0')}` as ContainerId,
  );
  t.equal(unmeasuredWords([], none), undefined);
  t.match(unmeasuredWords(ids.slice(0, 1), none), ids[0]);
  const many = unmeasuredWords(ids, none) ?? '';
  t.ok(many.length <= limits.hostFaultChars, `${many.length} characters`);
  t.match(many, /000000000002 and 497 more;/);
  t.match(unmeasuredWords([], { ...none, attempts: attempted(untried, 'late', 0, 1) }), /volumes/);
  t.end();
});

t.test('a file system is as full as its scarcer resource', (t) => {
  const blocks = { blocks: 200, bavail: 150, bsize: 4096 };
  t.equal(fillOf({ ...blocks, bavail: 50, files: 100, ffree: 90 }).usedPercent, 75);
  t.equal(fillOf({ ...blocks, files: 100, ffree: 5 }).usedPercent, 95, 'inodes count');
  t.equal(fillOf({ ...blocks, files: 0, ffree: 0 }).usedPercent, 25, 'where there are any');
  t.equal(fillOf({ ...blocks, files: 100, ffree: 5 }).freeBytes, 150 * 4096);
  t.end();
});

t.test('pressure ends well below where it begins', (t) => {
  t.notOk(isPressed({ usedPercent: 89 }, false, 90));
  t.ok(isPressed({ usedPercent: 90 }, false, 90));
  t.ok(isPressed({ usedPercent: 89 }, true, 90));
  t.notOk(isPressed({ usedPercent: 89 - diskReliefPercent }, true, 90));
  t.end();
});

t.test('a slow measurement repeats less often', (t) => {
  t.equal(restMs(10, 30_000), 30_000);
  t.equal(restMs(60_000, 30_000), 540_000);
  t.end();
});

t.test('a container’s limit is the lower of its own and the host’s', (t) => {
  t.same(diskLimitOf({ disk_bytes: 50 }, 100), { bytes: 50, isEnforced: true });
  t.same(diskLimitOf({ disk_bytes: 500 }, 100), { bytes: 100, isEnforced: true });
  t.same(diskLimitOf({}, 100), { bytes: 100, isEnforced: false }, 'declared before there were limits');
  t.match(evictionWords({ usedBytes: 3 * 1024 ** 2, limitBytes: 2 ** 20 }), /wrote 3 MiB.*limit is 1 MiB/);
  t.match(evictionWords({ usedBytes: null, limitBytes: 2 ** 20 }), /could not be measured in 60 s.*limit of 1 MiB/);
  t.end();
});
