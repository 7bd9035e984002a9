/** What is deleted by time is deleted when the time has certainly come. */
import t from 'tap';
import { CautiousClock } from '../../lib/cautious-clock.ts';
import { limits } from '../../schemas/limits.ts';

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

t.test('it is the wall clock while that agrees with the monotonic one', (t) => {
  const clock = clockOf();
  const cautious = new CautiousClock(clock, clock.nowMs() - 1000);
  for (let n = 0; n < 100; n++) {
    clock.pass(day / 7);
    t.equal(cautious.nowMs(), clock.nowMs());
  }
  t.end();
});

t.test('a jump forward is not believed, until it has stood for a day', (t) => {
  const clock = clockOf();
  const cautious = new CautiousClock(clock, clock.nowMs());
  const startMs = cautious.nowMs();
  clock.jump(10 * day);
  t.equal(cautious.nowMs(), startMs);
  clock.pass(1000);
  t.equal(cautious.nowMs(), startMs + 1001);
  for (let n = 0; n < 23; n++) {
    clock.pass(3_600_000);
    t.ok(cautious.nowMs() < startMs + 2 * day);
  }
  clock.pass(limits.clockSettleMs);
  t.equal(cautious.nowMs(), clock.nowMs());
  t.end();
});

t.test('a clock that goes on jumping is never believed', (t) => {
  const clock = clockOf();
  const cautious = new CautiousClock(clock, clock.nowMs());
  const startMs = cautious.nowMs();
  for (let n = 0; n < 20; n++) {
    clock.jump(day);
    clock.pass(day / 2);
    cautious.nowMs();
  }
  t.ok(cautious.nowMs() <= startMs + 10 * day * 1.001);
  t.end();
});

t.test('back again after a jump, nothing has come of it', (t) => {
  const clock = clockOf();
  const cautious = new CautiousClock(clock, clock.nowMs());
  clock.jump(10 * day);
  cautious.nowMs();
  clock.pass(5000);
  clock.jump(-10 * day);
  t.equal(cautious.nowMs(), clock.nowMs());
  clock.jump(-day);
  t.equal(cautious.nowMs(), clock.nowMs(), 'never ahead of the wall');
  t.end();
});

t.test('at a load it starts from the newest time on record', (t) => {
  const rows: [string, number | undefined, number][] = [
    ['records of a moment ago', 1000 * day - 1, 1000 * day],
    ['records of an hour ago', 1000 * day - 3_600_000, 1000 * day],
    ['records of ten days ago', 990 * day, 990 * day + limits.clockTrustMs],
    ['records of the future', 1010 * day, 1000 * day],
    ['no records', undefined, 1000 * day],
  ];
  for (const [what, newestMs, expected] of rows) {
    t.equal(new CautiousClock(clockOf(), newestMs).nowMs(), expected, what);
  }
  t.end();
});

t.test('a load after a jump does not believe what the process did not', (t) => {
  const clock = clockOf();
  const ofProcess = new CautiousClock(clock, undefined);
  const startMs = ofProcess.nowMs();
  clock.jump(10 * day);
  // Records that were written after the jump bear its times.
  t.equal(new CautiousClock(clock, 1010 * day, ofProcess).nowMs(), startMs);
  t.equal(new CautiousClock(clock, 990 * day, ofProcess).nowMs(), 990 * day + limits.clockTrustMs);
  t.end();
});
