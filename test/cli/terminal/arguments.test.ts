import t from 'tap';
import { collect, portNumber, wholeNumber } from '../../../cli/terminal/arguments.ts';

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
