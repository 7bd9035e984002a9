import t from 'tap';
import { collect, endTime, pastTime, portNumber, wholeNumber } from '../../../cli/terminal/arguments.ts';

t.test('whole numbers within bounds', (t) => {
  const read = wholeNumber(0, 300);
  t.same(['0', '7', '300'].map(read), [0, 7, 300]);
  for (const text of ['', ' ', '-1', '301', '1.5', '1e2', '0x1', 'ten', '1 ', '9'.repeat(40)]) {
    t.throws(() => read(text), { message: 'It must be a whole number from 0 to 300.' }, text);
  }
  t.throws(() => portNumber('0'), { message: 'It must be a whole number from 1 to 65535.' });
  t.same(collect('b', collect('a')), ['a', 'b']);
  t.end();
});

t.test('ends: a time, or a span from now on', (t) => {
  const read = endTime(() => Date.parse('2026-11-24T12:00:00Z'));
  t.same(['30d', '12h', '5m', '2027-01-01', '2027-01-01T00:00:00+01:00'].map(read), [
    '2026-12-24T12:00:00.000Z',
    '2026-11-25T00:00:00.000Z',
    '2026-11-24T12:05:00.000Z',
    '2027-01-01T00:00:00.000Z',
    '2026-12-31T23:00:00.000Z',
  ]);
  for (const text of ['', '0d', '3', '3w', '-1d', 'tomorrow', '2027-13-01', '2027-02-30', '2027-04-31T00:00:00Z'])
    t.throws(() => read(text), text);
  t.end();
});

t.test('a past: a time, or a span until now', (t) => {
  const read = pastTime(() => Date.parse('2026-11-24T12:00:00Z'));
  t.same(['30d', '12h', '2026-11-01'].map(read), [
    '2026-10-25T12:00:00.000Z',
    '2026-11-24T00:00:00.000Z',
    '2026-11-01T00:00:00.000Z',
  ]);
  t.throws(() => read('yesterday'), { message: /^It must be a time such as / });
  t.end();
});
