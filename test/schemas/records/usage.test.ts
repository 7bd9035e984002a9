/** Merging and adding up sums of usage. */
import t from 'tap';
import type { ContainerId, PeerId } from '../../../schemas/ids.ts';
import {
  addHours,
  addTraffic,
  daysBetween,
  firstHourOf,
  hasHour,
  hasPeer,
  hourMs,
  merged,
  noUsage,
  type StoredAmounts,
  type StoredTraffic,
  type Sum,
  type Traffic,
  type UsageDay,
} from '../../../schemas/records/usage.ts';

const [a, b] = ['a', 'b'] as ContainerId[];
const first = firstHourOf('2026-11-24');
const item = (id: ContainerId | undefined, hour: number, used: StoredAmounts, name?: string) => ({
  id: id ?? ('' as ContainerId),
  hour: first + hour,
  used,
  name,
});
const web = item(a, 0, [10, 20, '30'], 'web');

t.test('each sum only grows, in whatever order reports come', (t) => {
  const newer = [item(a, 0, [11, 20, '300'], 'web'), item(b, 23, [1, 1, '1'])];
  const expected: UsageDay = {
    v: 1,
    names: { a: 'web' },
    containers: { a: { 0: [11, 20, '300'] }, b: { 23: [1, 1, '1'] } },
  };
  t.same(merged(merged(noUsage, [web]), newer), expected);
  t.same(merged(merged(noUsage, newer), [web]), expected);
  t.same(merged(merged(noUsage, [item(a, 0, [1, 25, '30'])]), [web]).containers, { a: { 0: [10, 25, '30'] } });
  t.end();
});

t.test('a sum that is there already makes no other day', (t) => {
  const day = merged(noUsage, [web]);
  t.equal(merged(day, [web, item(a, 0, [9, 9, '9'])]), day);
  t.same(noUsage.containers, {});
  t.end();
});

t.test('a removed container keeps its name', (t) => {
  const day = merged(merged(noUsage, [web]), [item(a, 1, [5, 5, '5'])]);
  t.same(day.names, { a: 'web' });
  t.end();
});

t.test('hours from one to before another', (t) => {
  const day = merged(noUsage, [web, item(a, 1, [1, 1, '1']), item(a, 2, [100, 100, '100'])]);
  const sums = new Map<string, Sum>();
  addHours(sums, day, first, { from: first, to: first + 2 });
  addHours(sums, day, first + 24, { from: first, to: first + 2 });
  t.same([...sums], [['a', { runMs: 11, cpuMs: 21, memByteMs: 31n, name: 'web' }]]);
  addHours(sums, merged(noUsage, [item(a, 1, [1, 1, '1'])]), first, { from: first, to: first + 2 });
  t.match(sums.get('a'), { runMs: 12, name: 'web' }, 'another host');
  t.end();
});

t.test('the days of hours', (t) => {
  t.same(daysBetween(first, first + 1), ['2026-11-24']);
  t.same(daysBetween(first + 23, first + 25), ['2026-11-24', '2026-11-25']);
  t.same(daysBetween(first, first), []);
  t.equal(first * hourMs, Date.parse('2026-11-24T00:00:00Z'));
  t.end();
});

t.test('traffic of VPN peers is beside what containers used, and is no part of it', (t) => {
  const phone = 'p' as PeerId;
  const sent = (hour: number, used: StoredTraffic) => ({ id: phone, hour: first + hour, used, name: undefined });
  const day = merged(merged(noUsage, [web, sent(0, [5, 70])]), [sent(0, [6, 60]), sent(1, [1, 0])]);
  t.same(day.peers, { p: { 0: [6, 70], 1: [1, 0] } }, 'each sum only grows');
  t.equal(merged(day, [sent(0, [1, 1])]), day);
  t.same(merged(noUsage, [web]).peers, undefined);
  t.ok(hasPeer(day, phone));
  t.ok(hasHour(day, sent(1, [0, 0])));
  t.notOk(hasHour(day, sent(2, [0, 0])));
  const hours = { from: first, to: first + 2 };
  const byContainer = new Map<string, Sum>();
  addHours(byContainer, day, first, hours);
  t.same([...byContainer.keys()], ['a']);
  const traffic = new Map<number, Traffic>();
  for (const source of [day, merged(noUsage, [sent(1, [2, 3]), sent(2, [9, 9])])])
    addTraffic(traffic, source, phone, first, hours);
  t.same(
    [...traffic],
    [
      [first, { rxBytes: 6, txBytes: 70 }],
      [first + 1, { rxBytes: 3, txBytes: 3 }],
    ],
    'of two hosts, within these hours',
  );
  t.end();
});
