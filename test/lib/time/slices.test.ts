/**
 * Long work gives way to the event loop: counted in steps, under a clock that goes on with every
 * look at it.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import t from 'tap';
import { createSlices, runAtOnce, sorting, worksBegun, worksBegunPerHost } from '../../../lib/time/slices.ts';
import { limits } from '../../../schemas/limits.ts';
import { createRandom } from '../../actors/support/random.ts';

/** A clock that is a millisecond later at every look. */
const ticking = () => {
  let nowMs = 0;
  return { monotonicMs: () => nowMs++ };
};

function* counting(steps: number, onStep: () => void): Generator<void, number, void> {
  for (let step = 0; step < steps; step++) {
    onStep();
    yield;
  }
  return steps;
}

t.test('no turn of the event loop has more than a slice, however many works there are', async (t) => {
  const slices = createSlices(ticking());
  const stepsOfTurn = [0];
  const onStep = (): void => {
    stepsOfTurn.push((stepsOfTurn.pop() ?? 0) + 1);
  };
  let isDone = false;
  const works = Promise.all(Array.from({ length: 5 }, async () => slices.run('test', counting(1000, onStep)))).then(
    (results) => {
      isDone = true;
      return results;
    },
  );
  while (!isDone) {
    await nextTurn();
    stepsOfTurn.push(0);
  }
  t.same(
    await works,
    Array.from({ length: 5 }, () => 1000),
  );
  t.ok(Math.max(...stepsOfTurn) <= 2 * limits.sliceMs, 'a slice, or the end of one and the beginning of the next');
  t.equal(
    stepsOfTurn.reduce((sum, steps) => sum + steps, 0),
    5000,
  );
});

t.test('works that messages begin: a little at once, the rest in slices, and no more than so many', async (t) => {
  const slices = createSlices(ticking());
  const stepsOfTurn = [0];
  const onStep = (): void => {
    stepsOfTurn.push((stepsOfTurn.pop() ?? 0) + 1);
  };
  const onFault = (): void => void t.fail();
  let ended = 0;
  const work = function* (steps: number): Generator<void, void, void> {
    yield* counting(steps, onStep);
    ended++;
  };
  t.ok(slices.begin('test', work(2), onFault));
  t.equal(ended, 1, 'a short one ends at once');
  for (let begun = 0; begun < worksBegun; begun++) t.ok(slices.begin('test', work(30), onFault));
  t.ok((stepsOfTurn[0] ?? 0) <= limits.atOnceMs, 'all of them together have the time that a turn has for them');
  t.notOk(slices.begin('test', work(1), onFault), 'too many wait');
  while (ended < worksBegun + 1) {
    await nextTurn();
    stepsOfTurn.push(0);
  }
  t.ok(Math.max(...stepsOfTurn) <= 2 * limits.sliceMs);
  t.ok(slices.begin('test', work(1), onFault), 'there is room again');
});

t.test('a host whose messages wait leaves room for those of others', async (t) => {
  const slices = createSlices(ticking());
  const onFault = (): void => void t.fail();
  let ended = 0;
  const work = function* (): Generator<void, void, void> {
    yield* counting(30, () => {});
    ended++;
  };
  for (let begun = 0; begun < worksBegunPerHost; begun++) t.ok(slices.begin('test', work(), onFault, 'h1'));
  t.notOk(slices.begin('test', work(), onFault, 'h1'));
  t.ok(slices.begin('test', work(), onFault, 'h2'));
  t.ok(slices.begin('test', work(), onFault));
  while (ended < worksBegunPerHost + 2) await nextTurn();
  t.ok(slices.begin('test', work(), onFault, 'h1'), 'there is room again');
});

t.test('an error of a step of begun work goes to its owner, at once or later', async (t) => {
  const slices = createSlices(ticking());
  const faults: unknown[] = [];
  for (const good of [0, 5 * limits.sliceMs]) {
    const work = (function* (): Generator<void, void, void> {
      yield* counting(good, () => {});
      throw new Error(`after ${good}`);
    })();
    t.ok(slices.begin('test', work, (error) => faults.push(error)));
  }
  while (faults.length < 2) await nextTurn();
  t.match(faults, [/after 0/, /after 100/]);
});

t.test('work that nobody wants any more ends between two slices', async (t) => {
  const slices = createSlices(ticking());
  const ending = new AbortController();
  let steps = 0;
  const work = slices.run(
    'test',
    counting(10_000, () => {
      if (++steps === 100) ending.abort();
    }),
    ending.signal,
  );
  await t.rejects(work, { name: 'AbortError' });
  t.ok(steps <= 100 + limits.sliceMs);
});

t.test('an error of a step is the work’s', async (t) => {
  const slices = createSlices(ticking());
  const work = counting(10, () => {
    throw new Error('bad step');
  });
  await t.rejects(slices.run('test', work), /bad step/);
});

t.test('sorting in steps is sorting', (t) => {
  const random = createRandom(1);
  for (const length of [0, 1, 2, 63, 64, 65, 127, 128, 129, 1000, 5000]) {
    const items = Array.from({ length }, (_, index) => ({ key: random.below(50), index }));
    const compare = (one: { key: number }, other: { key: number }): number => one.key - other.key;
    t.same(runAtOnce(sorting(items, compare)), items.toSorted(compare), `${length}, stable`);
  }
  t.end();
});
