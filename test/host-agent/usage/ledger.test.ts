/** What the ledger of an agent makes of samples, ends, restarts and clocks. */
import fc from 'fast-check';
import t from 'tap';
import { Ledger, beginLedger, spread, type LedgerState, type Moment } from '../../../host-agent/usage/ledger.ts';
import type { ContainerId, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import {
  added,
  hourMs,
  merged,
  noAmounts,
  noUsage,
  fromStored,
  toStored,
  type Amounts,
} from '../../../schemas/records/usage.ts';

const tenant = 'acme' as TenantId;
const id = '0190a000-0000-7000-8000-000000000001' as ContainerId;
const noon = Date.parse('2026-11-24T12:00:00Z');
const at = (ms: number): string => new Date(noon + ms).toISOString();
const moment = (ms: number): Moment => ({ nowMs: noon + ms, steadyMs: ms });
const seen = (startedAt: string, finishedAt?: string, dockerId = 'd1') => ({
  dockerId,
  tenant,
  id,
  startedAt,
  finishedAt,
});
const begun = (): Ledger => new Ledger(beginLedger(noon));

const sumsOf = ({ hours }: LedgerState): Amounts =>
  [...hours.values()]
    .flatMap((entries) => [...entries.values()])
    .reduce((sum, { used }) => added(sum, used), noAmounts);
const hoursOf = (ledger: Ledger): Record<string, Amounts | undefined> =>
  Object.fromEntries(
    Array.from(ledger.state().hours, ([hour, entries]) => [
      new Date(hour * hourMs).getUTCHours(),
      entries.get(id)?.used,
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

t.test('what was used before the ledger was begun is not counted', (t) => {
  const ledger = begun();
  ledger.see(seen(at(-90_000), at(-60_000), 'd0'), moment(0));
  ledger.see(seen(at(-90_000)), moment(0));
  ledger.sample('d1', at(-90_000), moment(10_000), { cpuMs: 9_000, memBytes: 1 });
  t.same(sumsOf(ledger.state()), noAmounts);
  ledger.sample('d1', at(-90_000), moment(25_000), { cpuMs: 9_100, memBytes: 1 });
  t.match(sumsOf(ledger.state()), { cpuMs: 100, runMs: 15_000 });
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
  const grace = limits.usageHourGraceMs;
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
  t.same(new Ledger(stored(ledger)).close(noon + 2 * hourMs), closed);
  t.end();
});

t.test('a wall clock that is set neither adds time nor takes any', (t) => {
  const ledger = begun();
  ledger.see(seen(at(0)), moment(0));
  ledger.sample('d1', at(0), { nowMs: noon + 10_000, steadyMs: 10_000 }, { cpuMs: 0, memBytes: 0 });
  ledger.sample('d1', at(0), { nowMs: noon + 5 * hourMs, steadyMs: 20_000 }, { cpuMs: 5, memBytes: 0 });
  t.equal(sumsOf(ledger.state()).runMs, 20_000, 'forward');
  ledger.sample('d1', at(0), { nowMs: noon + 30_000, steadyMs: 30_000 }, { cpuMs: 6, memBytes: 0 });
  ledger.sample('d1', at(0), { nowMs: noon + 40_000, steadyMs: 40_000 }, { cpuMs: 7, memBytes: 0 });
  t.match(sumsOf(ledger.state()), { runMs: 30_000, cpuMs: 7 }, 'back: the sample that finds it counts no time');
  t.end();
});

t.test('containers of a tenant are spread over messages of so many', (t) => {
  const ledger = begun();
  const most = limits.usagePartContainers;
  const idOf = (number: number): ContainerId =>
    `0190a000-0000-7000-8000-${String(number).padStart(12, '0')}` as ContainerId;
  for (let number = 0; number <= most; number++) {
    ledger.see({ ...seen(at(0), at(10), `d${number}`), id: idOf(number) }, moment(10));
  }
  ledger.see({ ...seen(at(0), at(10), 'other'), id: idOf(most + 1), tenant: 'other' as TenantId }, moment(10));
  const parts = [...ledger.state().hours.values()].flatMap((entries) => [...entries.values()].map(({ part }) => part));
  t.equal(parts.filter((part) => part === 0).length, most + 1);
  t.equal(parts.filter((part) => part === 1).length, 1);
  const next = new Ledger(stored(ledger));
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

/** What may happen to an agent while one run goes on. */
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

t.test('whenever an agent is killed, its owner has every millisecond once', (t) => {
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 40 }), (happenings) => {
      let [nowMs, cpuMs] = [0, 0];
      let ledger = begun();
      let disk = stored(ledger);
      let owner = noUsage;
      const report = (): void => {
        disk = stored(ledger);
        for (const [hour, entries] of disk.hours) {
          // One message for each hour: the test needs no days.
          const items = Array.from(entries, ([, { used }]) => ({
            id: `${hour}` as ContainerId,
            hour: 0,
            used: toStored(used),
            name: undefined,
          }));
          owner = merged(owner, items);
        }
      };
      const sample = (): void => {
        ledger.see(seen(at(0)), moment(nowMs));
        ledger.sample('d1', at(0), moment(nowMs), { cpuMs, memBytes: 7 });
        for (const [hour] of ledger.close(noon + nowMs)) {
          report();
          ledger.forgetHour(hour);
        }
      };
      sample();
      for (const each of happenings) {
        if (each.kind === 'sample' || each.kind === 'kill') {
          nowMs += each.ms;
          cpuMs += each.cpuMs;
        }
        if (each.kind === 'sample') sample();
        if (each.kind === 'write') disk = stored(ledger);
        if (each.kind === 'report') report();
        if (each.kind === 'kill') ledger = new Ledger(disk);
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
