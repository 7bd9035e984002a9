import t from 'tap';
import { backoffMs, jittered } from '../../../lib/time/backoff.ts';
import { retry } from '../../../lib/time/retry.ts';

const failing = (failures: number) => {
  const attempts: number[] = [];
  const work = (attempt: number): Promise<string> => {
    attempts.push(attempt);
    return attempts.length > failures ? Promise.resolve('done') : Promise.reject(new Error(`failure ${attempt}`));
  };
  return { attempts, work };
};

t.test('attempts follow failures after the pauses', async (t) => {
  const { work, attempts } = failing(3);
  const failures: string[] = [];
  const pauses: number[] = [];
  const done = await retry(work, {
    pauseMs: (attempt) => backoffMs(attempt, { minMs: 10, maxMs: 25 }),
    onFailure: (error, attempt) => failures.push(`${attempt}: ${(error as Error).message}`),
    pause: (ms) => Promise.resolve(void pauses.push(ms)),
  });
  t.equal(done, 'done');
  t.same(attempts, [0, 1, 2, 3]);
  t.same(failures, ['0: failure 0', '1: failure 1', '2: failure 2']);
  t.same(pauses, [10, 20, 25]);
});

t.test('an attempt that returns nothing is followed by another', async (t) => {
  const found = await retry((attempt) => Promise.resolve(attempt === 2 ? attempt : undefined), { pauseMs: () => 0 });
  t.equal(found, 2);
});

t.test('a failure ends the attempts, unless somebody hears of it', async (t) => {
  const { work, attempts } = failing(9);
  await t.rejects(retry(work, { pauseMs: () => 0 }), /failure 0/);
  const onFailure = (error: unknown, attempt: number): void => {
    if (attempt === 2) throw error;
  };
  await t.rejects(retry(work, { pauseMs: () => 0, onFailure }), /failure 2/, 'the last is thrown');
  t.same(attempts, [0, 0, 1, 2]);
});

t.test('the signal ends the pause and the attempts', async (t) => {
  const { work, attempts } = failing(9);
  const ending = new AbortController();
  const done = retry(work, {
    pauseMs: () => 60_000,
    signal: ending.signal,
    onFailure: () => setImmediate(() => ending.abort()),
  });
  t.equal(await done, undefined);
  t.same(attempts, [0]);
  t.equal(await retry(work, { pauseMs: () => 0, signal: ending.signal }), undefined, 'no attempt after it');
  t.same(attempts, [0]);
});

t.test('jittered pauses are between half of a pause and all of it', (t) => {
  const pauseMs = jittered({ minMs: 100, maxMs: 400 });
  for (const [attempt, ms] of [100, 200, 400, 400].entries()) {
    const pause = pauseMs(attempt);
    t.ok(pause >= ms / 2 && pause <= ms, `${pause} of ${ms}`);
  }
  t.end();
});
