/** The ledger of an agent over samples, ends, restarts and changes of the clock. */
import fc from 'fast-check';
import t from 'tap';
import {
  Ledger,
  beginLedger,
  spread,
  usageHourGraceMs,
  usagePartContainers,
  type LedgerState,
  type PeerCounted,
} from '../../../host-agent/usage/ledger.ts';
import type { Moment } from '../../../host-agent/usage/wall-clock.ts';
import type { ContainerId, PeerId, TenantId } from '../../../schemas/ids.ts';
import {
  added,
  hourMs,
  isPossible,
  merged,
  noAmounts,
  noUsage,
  fromStored,
  toStored,
  type Amounts,
  type Used,
} from '../../../schemas/records/usage.ts';

const tenant = 'acme' as TenantId;
const id = '0190a000-0000-7000-8000-000000000001' as ContainerId;
const noon = Date.parse('2026-11-24T12:00:00Z');
const at = (ms: number): string => new Date(noon + ms).toISOString();
/** The machine has run for a day at noon, by a clock that is ahead by so much. */
const upMs = 24 * hourMs;
const moment = (ms: number, aheadMs = 0): Moment => ({ nowMs: noon + ms + aheadMs, steadyMs: upMs + ms });
const seen = (startedAt: string, finishedAt?: string, dockerId = 'd1') => ({
  dockerId,
  tenant,
  id,
  startedAt,
  finishedAt,
});
const boot = 'b1';
const begun = (aheadMs = 0): Ledger => new Ledger(beginLedger(moment(0, aheadMs), boot), boot);
/** After a restart of the agent. */
const again = (ledger: Ledger): Ledger => new Ledger(stored(ledger), boot);

const ofContainer = (used: Used): Amounts => ('runMs' in used ? used : noAmounts);
const sumsOf = ({ hours }: LedgerState): Amounts =>
  [...hours.values()]
    .flatMap((entries) => [...entries.values()])
    .reduce((sum, { used }) => added(sum, ofContainer(used)), noAmounts);
const hoursOf = (ledger: Ledger): Record<string, Amounts | undefined> =>
  Object.fromEntries(
    Array.from(ledger.state().hours, ([hour, entries]) => [
      new Date(hour * hourMs).getUTCHours(),
      entries.get(id)?.used as Amounts | undefined,
    ]),
  );
const stored = (ledger: Ledger): LedgerState => structuredClone(ledger.state());

t.test('a run is counted from its start to its end, and its memory as it was last seen', (t) => {
  const ledger = begun();
  ledger.see(seen(at(1_000)), moment(1_500));
  ledger.sample('d1', at(1_000), moment(11_000), { cpuMs: 500, memBytes: 100 });
  t.equal(ledger.see(seen(at(1_000), at(16_000)), moment(16_100)), true, 'it has ended');
  t.same(hoursOf(ledger), { 12: { runMs: 15_000, cpuMs: 500, memByteMs: 1_500_000n } });
  t.equal(ledger.see(seen(at(1_000), at(16_000)), moment(99_000)), false, 'and does so once');
  ledger.sample('d1', at(1_000), moment(99_000), { cpuMs: 900, memBytes: 1 });
  t.equal(sumsOf(ledger.state()).cpuMs, 500, 'a late sample of it counts for nothing');
  t.end();
});

t.test('a run that no sample has met counts its time', (t) => {
  const ledger = begun();
  ledger.see(seen(at(1_000), at(3_500)), moment(4_000));
  t.same(hoursOf(ledger), { 12: { runMs: 2_500, cpuMs: 0, memByteMs: 0n } });
  t.end();
});

t.test('another start is another run, whose counter begins at 0', (t) => {
  const ledger = begun();
  ledger.see(seen(at(0)), moment(0));
  ledger.sample('d1', at(0), moment(10_000), { cpuMs: 700, memBytes: 0 });
  ledger.sample('d1', at(0), moment(12_000), { cpuMs: 20, memBytes: 0 });
  t.equal(sumsOf(ledger.state()).cpuMs, 700, 'the counter of the next run, whose start is not known yet');
  ledger.see(seen(at(11_000)), moment(12_000));
  ledger.sample('d1', at(11_000), moment(14_000), { cpuMs: 30, memBytes: 0 });
  t.match(sumsOf(ledger.state()), { cpuMs: 730, runMs: 13_000 });
  t.end();
});

t.test('use before the ledger was begun is not counted', (t) => {
  const ledger = begun();
  ledger.see(seen(at(-90_000), at(-60_000), 'd0'), moment(0));
  ledger.see(seen(at(-90_000)), moment(0));
  ledger.sample('d1', at(-90_000), moment(10_000), { cpuMs: 9_000, memBytes: 1 });
  t.match(sumsOf(ledger.state()), { cpuMs: 0, runMs: 10_000 }, 'its time from then on is');
  ledger.sample('d1', at(-90_000), moment(25_000), { cpuMs: 9_100, memBytes: 1 });
  t.match(sumsOf(ledger.state()), { cpuMs: 100, runMs: 25_000 });
  ledger.see(seen(at(-90_000), at(20_000), 'd2'), moment(25_000));
  t.match(sumsOf(ledger.state()), { cpuMs: 100, runMs: 45_000 }, 'one that ended before it was seen');
  t.end();
});

t.test('without a counter the time counts; the CPU time is made up for later', (t) => {
  const ledger = begun();
  ledger.see(seen(at(0)), moment(0));
  ledger.sample('d1', at(0), moment(10_000), { cpuMs: 100, memBytes: 10 });
  ledger.sample('d1', at(0), moment(20_000), undefined);
  ledger.sample('d1', at(0), moment(30_000), { cpuMs: 400, memBytes: 20 });
  t.same(sumsOf(ledger.state()), { runMs: 30_000, cpuMs: 400, memByteMs: 400_000n });
  t.end();
});

t.test('a time over the end of an hour is split', (t) => {
  const ledger = begun();
  const before = hourMs - 10_000;
  ledger.see(seen(at(before)), moment(before));
  ledger.sample('d1', at(before), moment(hourMs + 20_000), { cpuMs: 31, memBytes: 1 });
  t.same(hoursOf(ledger), {
    12: { runMs: 10_000, cpuMs: 10, memByteMs: 10_000n },
    13: { runMs: 20_000, cpuMs: 21, memByteMs: 20_000n },
  });
  t.end();
});

t.test('an hour is closed when it is over and every run was counted since', (t) => {
  const ledger = begun();
  const grace = usageHourGraceMs;
  ledger.see(seen(at(0)), moment(0));
  ledger.sample('d1', at(0), moment(hourMs - 1), { cpuMs: 1, memBytes: 0 });
  t.same(ledger.close(noon + hourMs + grace), [], 'the run was not counted to its end');
  ledger.sample('d1', at(0), moment(hourMs + 1_000), { cpuMs: 2, memBytes: 0 });
  t.same(ledger.close(noon + hourMs + grace - 1), [], 'others may be heard of');
  const [[hour] = [], ...others] = ledger.close(noon + hourMs + grace);
  t.same([hour, others], [noon / hourMs, []]);
  ledger.forgetHour(hour!);
  ledger.see(seen(at(10), at(510), 'late'), moment(hourMs + grace));
  t.match(hoursOf(ledger), { 13: { runMs: 1_500 } }, 'a run of the closed hour counts for the next');
  t.end();
});

t.test('a closed hour that was not forgotten is closed again', (t) => {
  const ledger = begun();
  ledger.see(seen(at(0), at(1_000)), moment(1_000));
  const closed = ledger.close(noon + 2 * hourMs);
  t.equal(closed.length, 1);
  t.same(again(ledger).close(noon + 2 * hourMs), closed);
  t.end();
});

t.test('a wall clock that is set neither adds time nor takes any', (t) => {
  const ledger = begun();
  const sample = (ms: number, aheadMs: number, cpuMs: number): void =>
    ledger.sample('d1', at(0), moment(ms, aheadMs), { cpuMs, memBytes: 0 });
  ledger.see(seen(at(0)), moment(0));
  sample(10_000, 0, 0);
  sample(20_000, 5 * hourMs, 5);
  t.equal(sumsOf(ledger.state()).runMs, 20_000, 'forward');
  sample(30_000, 0, 6);
  sample(40_000, 0, 7);
  t.match(sumsOf(ledger.state()), { runMs: 40_000, cpuMs: 7 }, 'back');
  sample(45_000, 4_000, 8);
  t.equal(sumsOf(ledger.state()).runMs, 45_000, 'by a little');
  t.end();
});

t.test('a clock that is set while the agent is away neither adds time nor takes any', (t) => {
  for (const aheadMs of [-3 * hourMs, 48 * hourMs, -60_000, 1_000]) {
    const ledger = begun(aheadMs);
    ledger.see(seen(at(1_000 + aheadMs)), moment(1_000, aheadMs));
    ledger.sample('d1', at(1_000 + aheadMs), moment(9_000, aheadMs), { cpuMs: 1, memBytes: 0 });
    const next = again(ledger);
    next.see(seen(at(1_000 + aheadMs), at(19_000)), moment(20_000));
    t.equal(sumsOf(next.state()).runMs, 18_000, `${aheadMs}`);
  }
  t.end();
});

t.test('starts and ends are of the clock that dated them', (t) => {
  for (const aheadMs of [-3 * hourMs, 48 * hourMs]) {
    const ledger = begun(aheadMs);
    const [startedAt, endedAt] = [at(1_000 + aheadMs), at(9_000 + aheadMs)];
    ledger.see(seen(startedAt), moment(1_000, aheadMs));
    ledger.sample('d1', startedAt, moment(5_000, aheadMs), { cpuMs: 1, memBytes: 0 });
    ledger.see(seen(at(9_500 + aheadMs), undefined, 'd2'), moment(10_000, aheadMs));
    ledger.see(seen(at(11_000), undefined, 'd3'), moment(12_000));
    ledger.see(seen(startedAt, endedAt), moment(12_000));
    t.equal(sumsOf(ledger.state()).runMs, 8_000, `an end before the clock was set, heard of later: ${aheadMs}`);
    ledger.see(seen(at(9_500 + aheadMs), at(13_500), 'd2'), moment(14_000));
    t.equal(sumsOf(ledger.state()).runMs, 12_000, `a start before and an end after: ${aheadMs}`);
    ledger.see(seen(at(11_000), at(13_000), 'd3'), moment(14_000));
    t.equal(sumsOf(ledger.state()).runMs, 14_000, `a run by the right clock: ${aheadMs}`);
  }
  t.end();
});

t.test('after a ledger was begun by a clock that was ahead, runs by the right one are counted', (t) => {
  const ledger = begun(48 * hourMs);
  ledger.see(seen(at(5_000), at(7_000)), moment(8_000));
  t.equal(sumsOf(ledger.state()).runMs, 2_000);
  const rebooted = new Ledger(stored(ledger), 'b2');
  rebooted.see(seen(at(hourMs), at(hourMs + 500), 'd2'), { nowMs: noon + hourMs + 900, steadyMs: 60_000 });
  t.equal(sumsOf(rebooted.state()).runMs, 2_500, 'and those of the next boot');
  t.end();
});

t.test('a machine that was down is not billed', (t) => {
  const ledger = begun();
  ledger.see(seen(at(0)), moment(0));
  ledger.sample('d1', at(0), moment(10_000), { cpuMs: 5, memBytes: 0 });
  ledger.see(seen(at(0), undefined, 'd2'), moment(10_000));
  ledger.sample('d2', at(0), moment(10_000), { cpuMs: 5, memBytes: 0 });
  // It lost its power at once, and came back two hours later.
  const after = again(new Ledger(stored(ledger), 'b2'));
  const rebooted = new Ledger(stored(after), 'b2');
  const now = { nowMs: noon + 2 * hourMs, steadyMs: 30_000 };
  rebooted.see(seen(at(0), at(2 * hourMs - 20_000)), now);
  t.equal(sumsOf(rebooted.state()).runMs, 20_000, 'its engine dates the end by its own start');
  rebooted.see(seen(at(0), at(12_000), 'd2'), now);
  t.equal(sumsOf(rebooted.state()).runMs, 22_000, 'an end before the machine went down');
  t.end();
});

t.test('a ledger of an older agent goes on by the wall clock', (t) => {
  const ledger = begun();
  ledger.see(seen(at(0)), moment(0));
  ledger.sample('d1', at(0), moment(10_000), { cpuMs: 5, memBytes: 0 });
  const { sinceMs, openFrom, hours, counted, runs } = stored(ledger);
  const older = new Map(Array.from(runs, ([id, { countedAtMs: _, ...run }]) => [id, run]));
  const next = new Ledger({ sinceMs, openFrom, hours, counted, runs: older }, boot);
  next.see(seen(at(0), at(30_000)), moment(31_000));
  t.equal(sumsOf(next.state()).runMs, 30_000);
  t.end();
});

t.test('containers of a tenant are spread over messages of so many', (t) => {
  const ledger = begun();
  const most = usagePartContainers;
  const idOf = (number: number): ContainerId =>
    `0190a000-0000-7000-8000-${String(number).padStart(12, '0')}` as ContainerId;
  for (let number = 0; number <= most; number++) {
    ledger.see({ ...seen(at(0), at(10), `d${number}`), id: idOf(number) }, moment(10));
  }
  ledger.see({ ...seen(at(0), at(10), 'other'), id: idOf(most + 1), tenant: 'other' as TenantId }, moment(10));
  const parts = [...ledger.state().hours.values()].flatMap((entries) => [...entries.values()].map(({ part }) => part));
  t.equal(parts.filter((part) => part === 0).length, most + 1);
  t.equal(parts.filter((part) => part === 1).length, 1);
  const next = again(ledger);
  next.see({ ...seen(at(20), at(hourMs + 10), 'd0'), id: idOf(0) }, moment(hourMs));
  t.equal(
    next
      .state()
      .hours.get(noon / hourMs + 1)
      ?.get(idOf(0))?.part,
    0,
    'and stays in its own',
  );
  t.end();
});

t.test('the hours of a span add up to the whole', (t) => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 10 * hourMs }),
      fc.integer({ min: 0, max: 10 * hourMs }),
      fc.integer({ min: 0, max: 100 * hourMs }),
      (fromMs, spanMs, cpuMs) => {
        const parts = spread({ fromMs, toMs: fromMs + spanMs }, { cpuMs, memBytes: 3 }).map(([, used]) => used);
        const sum = parts.reduce(added, noAmounts);
        return sum.runMs === spanMs && sum.cpuMs === cpuMs && sum.memByteMs === BigInt(spanMs) * 3n;
      },
    ),
    // A product beyond 2^53.
    { examples: [[0, 25_265_073, 359_274_881]] },
  );
  t.end();
});

/** Capacity of the host: more CPU time than any, and the memory of the run. */
const most = { cpu_millis: 10 ** 9, mem_bytes: 7, containers: 1 };

t.test('an hour that a clock shows again and again holds no more than owners take', (t) => {
  const ledger = begun();
  ledger.see(seen(at(0)), moment(0));
  const minute = 60_000;
  let [nowMs, aheadMs] = [0, 0];
  for (let times = 0; times < 5; times++) {
    nowMs += 58 * minute;
    ledger.sample('d1', at(0), moment(nowMs, aheadMs), { cpuMs: nowMs / 2, memBytes: 7 });
    aheadMs -= 58 * minute;
  }
  const hours = [...ledger.state().hours].map(([, entries]) => toStored(ofContainer([...entries.values()][0]!.used)));
  t.same(
    hours.map(([runMs, cpuMs]) => [runMs / minute, cpuMs / minute]),
    [
      [120, 60],
      [120, 60],
      [50, 25],
    ],
  );
  t.ok(hours.every((used) => isPossible(used, most)));
  t.end();
});

/** Events of an agent while one run goes on. */
const happening = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('sample' as const),
      ms: fc.integer({ min: 1, max: 2 * hourMs }),
      cpuMs: fc.nat(50_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('write' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('set' as const),
      // A smaller step than usageClockStepMs looks like two readings that lie apart.
      aheadMs: fc.oneof(fc.constant(0), fc.integer({ min: -36_000, max: 360_000 })).map((seconds) => seconds * 1000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('report' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('kill' as const),
      ms: fc.integer({ min: 1, max: 5 * hourMs }),
      cpuMs: fc.nat(50_000),
    }),
  },
);

t.test('whenever an agent is killed or its clock is set, its owner has every millisecond once', (t) => {
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 40 }), (happenings) => {
      let [nowMs, cpuMs, aheadMs] = [0, 0, 0];
      let source = 1;
      let ledger = begun();
      let disk = { source, state: stored(ledger) };
      let owner = noUsage;
      const send = (of: number, hours: LedgerState['hours']): void => {
        for (const [hour, entries] of hours) {
          // One message for each hour: the test needs no days.
          const items = Array.from(entries, ([, { used }]) => ({
            id: `${of}-${hour}` as ContainerId,
            hour: 0,
            used: toStored(ofContainer(used)),
            name: undefined,
          }));
          if (!items.every(({ used }) => isPossible(used, most))) throw new Error('its owner refuses it for good');
          owner = merged(owner, items);
        }
      };
      const write = (): void => void (disk = { source, state: stored(ledger) });
      const report = (): void => {
        write();
        send(source, disk.state.hours);
      };
      const sample = (): void => {
        const now = moment(nowMs, aheadMs);
        ledger.see(seen(at(0)), now);
        ledger.sample('d1', at(0), now, { cpuMs, memBytes: 7 });
        if (ledger.isAheadOf(now.nowMs)) {
          const former = new Map(ledger.goBack(now.nowMs));
          source += 1;
          write();
          send(source - 1, former);
          return;
        }
        for (const [hour] of ledger.close(now.nowMs)) {
          report();
          ledger.forgetHour(hour);
        }
      };
      sample();
      // A start that is first heard of after the clock was set may be of either time.
      write();
      for (const each of happenings) {
        if (each.kind === 'sample' || each.kind === 'kill') {
          nowMs += each.ms;
          cpuMs += each.cpuMs;
        }
        if (each.kind === 'sample') sample();
        if (each.kind === 'set') aheadMs = each.aheadMs;
        if (each.kind === 'write') write();
        if (each.kind === 'report') report();
        if (each.kind === 'kill') {
          ledger = new Ledger(structuredClone(disk.state), boot);
          // Random in life.
          source = disk.source;
        }
      }
      sample();
      report();
      const sum = Object.values(owner.containers)
        .flatMap((hours) => Object.values(hours))
        .reduce((sum, used) => added(sum, fromStored(used)), noAmounts);
      return sum.runMs === nowMs && sum.cpuMs === cpuMs && sum.memByteMs === BigInt(nowMs) * 7n;
    }),
    { numRuns: 500 },
  );
  t.end();
});

const [phone, tablet] = ['phone-key', 'tablet-key'];
const peerId = (at: number): PeerId => `00000000-0000-7000-8000-00000000000${at}` as PeerId;
const counted = (at: number, rxBytes: number, txBytes: number, more: Partial<PeerCounted> = {}): PeerCounted => ({
  ...{ tenant, id: peerId(at), link: 'boot 5', rxBytes, txBytes, handshakeAtMs: null, endpoint: null },
  ...more,
});
const trafficOf = (ledger: Ledger, at: number): Record<string, Used | undefined> =>
  Object.fromEntries(
    Array.from(ledger.state().hours, ([hour, entries]) => [
      new Date(hour * hourMs).getUTCHours(),
      entries.get(peerId(at))?.used,
    ]),
  );

t.test('a VPN peer’s traffic counts once, over every restart', (t) => {
  let ledger = begun();
  const look = (ms: number, ...seen: readonly (readonly [string, PeerCounted])[]): void =>
    ledger.countPeers(new Map(seen), moment(ms));
  look(0, [phone, counted(1, 1_000_000, 1_000_000)]);
  t.same(trafficOf(ledger, 1), {}, 'what an interface had counted before the first look is in an earlier ledger');
  look(1000, [phone, counted(1, 1_000_010, 1_000_020)], [tablet, counted(2, 5, 0)]);
  t.same(trafficOf(ledger, 1), { 12: { rxBytes: 10, txBytes: 20 } });
  t.same(trafficOf(ledger, 2), { 12: { rxBytes: 5, txBytes: 0 } }, 'a peer that is new counts from 0');
  ledger = again(ledger);
  look(2000, [phone, counted(1, 1_000_010, 1_000_021)]);
  t.same(trafficOf(ledger, 1), { 12: { rxBytes: 10, txBytes: 21 } }, 'the agent starts again');
  look(3000, [phone, counted(1, 1_000_100, 3_000_000, { link: 'boot 6' })]);
  t.same(trafficOf(ledger, 1), { 12: { rxBytes: 1_000_110, txBytes: 3_000_021 } }, 'another interface begins at 0');
  look(4000);
  look(5000, [phone, counted(1, 2_000_000, 4_000_000, { link: 'boot 6' })]);
  t.same(trafficOf(ledger, 1), { 12: { rxBytes: 3_000_110, txBytes: 7_000_021 } }, 'so does a peer that was out');
  look(6000, [phone, counted(1, 1, 0, { link: 'boot 6' })]);
  t.same(trafficOf(ledger, 1), { 12: { rxBytes: 3_000_111, txBytes: 7_000_021 } }, 'and one that was out unseen');
  look(hourMs, [phone, counted(1, 3, 4, { link: 'boot 6' })]);
  t.same(trafficOf(ledger, 1)[13], { rxBytes: 2, txBytes: 4 }, 'the next hour');
  t.end();
});

t.test('the last counters of a VPN peer are kept while it is out, for as long as its traffic', (t) => {
  let ledger = begun();
  const handshakeAtMs = moment(0).nowMs;
  ledger.countPeers(new Map(), moment(0));
  ledger.countPeers(new Map([[phone, counted(1, 5, 5, { handshakeAtMs, endpoint: '192.0.2.1:9' })]]), moment(1000));
  ledger.countPeers(new Map([[phone, counted(1, 0, 0, { link: 'boot 6' })]]), moment(2000));
  t.match(ledger.state().peers?.get(phone), { handshakeAtMs, endpoint: '192.0.2.1:9', link: 'boot 6' });
  ledger.countPeers(new Map(), moment(3000));
  ledger = again(ledger);
  t.match(ledger.state().peers?.get(phone), { handshakeAtMs, endpoint: '192.0.2.1:9', link: '', rxBytes: 0 });
  ledger.countPeers(new Map(), moment(91 * 24 * hourMs));
  t.same([...(ledger.state().peers ?? [])], []);
  t.end();
});
