import t from 'tap';
import { until } from './until.ts';

t.test('returns the first value that is neither undefined nor false', async (t) => {
  const values = [undefined, false, 0];
  t.equal(await until('a value', () => values.shift()), 0);
});

t.test('returns the first value that passes the check', async (t) => {
  let count = 0;
  t.equal(
    await until(
      'three',
      () => Promise.resolve(++count),
      (value) => value === 3,
    ),
    3,
  );
});

t.test('looks again after a look that throws', async (t) => {
  let looks = 0;
  const look = (): number => {
    if (++looks === 1) throw new Error('away');
    return looks;
  };
  t.equal(await until('the second look', look), 2);
});

t.test('the error after the deadline shows the last value', async (t) => {
  const never = until(
    () => 'a swan',
    () => ({ bird: 'duck' }),
    ({ bird }) => bird === 'swan',
    20,
  );
  await t.rejects(never, { message: "a swan: not within 20 ms; at last saw { bird: 'duck' }" });
});

t.test('the error after the deadline shows the error of the last look', async (t) => {
  const cause = new Error('away');
  const look = (): boolean => {
    throw cause;
  };
  const isSo = (value: boolean): boolean => value;
  await t.rejects(until('an answer', look, isSo, 20), {
    message: 'an answer: not within 20 ms; at last failed with Error: away',
    cause,
  });
});
