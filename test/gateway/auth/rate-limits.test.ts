import t from 'tap';
import { RateLimiter } from '../../../gateway/auth/rate-limits.ts';
import type { Clock } from '../../../lib/time/clock.ts';

t.test('a bucket refills at its rate, and charges leave a local share', async (t) => {
  let nowMs = 0;
  const clock: Clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };
  const limiter = new RateLimiter({ perSecond: 10, burst: 3 }, clock, { shared: true });
  t.same(
    [1, 2, 3, 4].map(() => limiter.take('a')),
    [0, 0, 0, 1],
  );
  t.equal(limiter.take('b'), 0, 'another key');
  nowMs += 100;
  t.equal(limiter.peek('a'), 0);
  t.same([limiter.take('a'), limiter.take('a')], [0, 1], 'one came back');
  t.same(
    [...limiter.tellUntold()],
    [
      ['a', 4],
      ['b', 1],
    ],
  );
  t.same([...limiter.tellUntold()], []);
  nowMs += 10_000;
  limiter.charge('a', 2);
  const twice = (): number[] => [limiter.take('a'), limiter.take('a'), limiter.take('a')];
  t.same(twice(), [0, 0, 1], 'what others took is gone, but for the share of this gateway');
  limiter.charge('a', 1000);
  t.equal(limiter.take('a'), 1);
  nowMs += 700;
  t.equal(limiter.take('a'), 0, 'the debt is bounded by one burst');
  const slow = new RateLimiter({ perSecond: 0.1, burst: 1 }, clock, { shared: false });
  slow.take('x');
  t.equal(slow.take('x'), 10, 'in how many seconds');
  t.equal(slow.peek('nobody'), 0);
});

t.test('a bucket says how many requests have room, and when all have', (t) => {
  let nowMs = 0;
  const clock: Clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };
  const limiter = new RateLimiter({ perSecond: 10, burst: 30 }, clock, { shared: true });
  const policy = { quota: 30, windowS: 3 };
  t.same(limiter.budget('a'), { left: 30, ...policy, fullS: 0 });
  for (let at = 0; at < 25; at++) limiter.take('a');
  t.same(limiter.budget('a'), { left: 5, ...policy, fullS: 3 });
  nowMs += 1000;
  t.same(limiter.budget('a'), { left: 15, ...policy, fullS: 2 });
  limiter.charge('a', 1000);
  t.match(limiter.budget('a'), { left: 3 }, 'the share that others cannot take');
  t.end();
});
