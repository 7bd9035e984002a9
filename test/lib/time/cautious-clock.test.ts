/** A clock for deletions by time: nothing is deleted before its time has certainly come. */
import fc from 'fast-check';
import t from 'tap';
import { CautiousClock, type ClockReading } from '../../../lib/time/cautious-clock.ts';
import { limits } from '../../../schemas/limits.ts';

const day = 86_400_000;
function clockOf(startMs = 1000 * day) {
  let [wallMs, monotonicMs] = [startMs, 5];
  return {
    nowMs: () => wallMs,
    monotonicMs: () => monotonicMs,
    pass: (ms: number) => ([wallMs, monotonicMs] = [wallMs + ms, monotonicMs + ms]),
    jump: (ms: number) => (wallMs += ms),
  };
}

const settleMs = limits.clockAgreedMs;
const at = (atMs: number): ClockReading => ({ atMs, wallMs: atMs, agreedMs: 0 });

t.test('it is the wall clock while that agrees with the monotonic one', (t) => {
  const clock = clockOf();
  const cautious = new CautiousClock(clock, settleMs, at(clock.nowMs()));
  for (let n = 0; n < 100; n++) {
    clock.pass(day / 7);
    t.equal(cautious.nowMs(), clock.nowMs());
  }
  t.end();
});

t.test('a jump forward is not believed, until it has stood for long', (t) => {
  const clock = clockOf();
  const cautious = new CautiousClock(clock, settleMs);
  const startMs = cautious.nowMs();
  clock.jump(10 * day);
  t.equal(cautious.nowMs(), startMs);
  clock.pass(1000);
  t.equal(cautious.nowMs(), startMs + 1001);
  clock.pass(settleMs - 2000);
  t.ok(cautious.nowMs() < startMs + settleMs * 1.001);
  clock.pass(1000);
  t.equal(cautious.nowMs(), clock.nowMs());
  t.end();
});

t.test('a clock that goes on jumping is never believed', (t) => {
  const clock = clockOf();
  const cautious = new CautiousClock(clock, settleMs);
  const startMs = cautious.nowMs();
  for (let n = 0; n < 200; n++) {
    clock.jump(day);
    clock.pass(day / 2);
    cautious.nowMs();
  }
  t.ok(cautious.nowMs() <= startMs + 100 * day * 1.001);
  t.end();
});

t.test('it follows a wall clock that is set back at once, and forward again only with the time', (t) => {
  const clock = clockOf();
  const cautious = new CautiousClock(clock, settleMs);
  clock.jump(10 * day);
  cautious.nowMs();
  clock.pass(5000);
  clock.jump(-10 * day);
  t.equal(cautious.nowMs(), clock.nowMs(), 'nothing has come of the jump');
  clock.jump(-20 * day);
  const behindMs = cautious.nowMs();
  t.equal(behindMs, clock.nowMs(), 'never ahead of the wall');
  clock.jump(20 * day);
  clock.pass(1000);
  t.equal(cautious.nowMs(), behindMs + 1001, 'what was dated while it was behind is as old as it is');
  t.end();
});

t.test('it goes on from the last reading', (t) => {
  const now = 1000 * day;
  const agreed = { atMs: now - day, wallMs: now - 1000, agreedMs: settleMs };
  const rows: [string, ClockReading | undefined, number][] = [
    ['a moment ago', at(now - 1), now - 1],
    ['ten days ago', at(now - 10 * day), now - 10 * day],
    ['of the future', at(now + 10 * day), now],
    ['none', undefined, now],
    ['owners before agreed for long, and this one agrees', agreed, now],
    ['this one is ahead of them', { ...agreed, wallMs: now - 5 * day }, now - day],
    ['this one is behind them', { ...agreed, atMs: now + 5 * day, wallMs: now + 5 * day }, now],
  ];
  for (const [what, from, expected] of rows)
    t.equal(new CautiousClock(clockOf(), settleMs, from).nowMs(), expected, what);
  t.end();
});

type Step =
  | { do: 'pass'; ms: number }
  /** Another process takes over, whose wall clock is off by days. */
  | { do: 'load'; offDays: number }
  | { do: 'jump'; offDays: number }
  | { do: 'stamp' };

t.test('nothing is old before its time, whichever clocks are ahead or behind', (t) => {
  const ttlMs = limits.tombstoneTtlMs;
  const offDays = fc.integer({ min: -40, max: 40 });
  const steps: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 3 * day }) }),
    fc.record({ do: fc.constantFrom('load' as const, 'jump' as const), offDays }),
    fc.record({ do: fc.constant('stamp' as const) }),
  );
  fc.assert(
    fc.property(fc.array(steps, { minLength: 5, maxLength: 60, size: 'max' }), (walk) => {
      let [trueMs, offMs] = [1000 * day, 0];
      const clock = { nowMs: () => Math.floor(trueMs + offMs), monotonicMs: () => trueMs };
      let cautious = new CautiousClock(clock, settleMs);
      let kept = cautious.read();
      const stamps: { readonly wallMs: number; readonly trueMs: number }[] = [];
      for (const step of walk) {
        if (step.do === 'pass') trueMs += step.ms;
        if (step.do === 'jump' || step.do === 'load') offMs = step.offDays * day;
        // A reading that was not stored with a date is lost with the process.
        if (step.do === 'load') cautious = new CautiousClock(clock, settleMs, kept);
        kept = step.do === 'stamp' ? cautious.read() : (cautious.read(), kept);
        if (step.do === 'stamp') stamps.push({ wallMs: clock.nowMs(), trueMs });
        const nowMs = cautious.nowMs();
        for (const stamp of stamps) {
          const ageMs = trueMs - stamp.trueMs;
          if (stamp.wallMs + ttlMs <= nowMs && ageMs * 1.001 + 1 < ttlMs) throw new Error(`deleted after ${ageMs} ms`);
        }
      }
    }),
    { numRuns: 2000 },
  );
  t.end();
});
