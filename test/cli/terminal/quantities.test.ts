import t from 'tap';
import { cpuIn, memoryIn } from '../../../cli/terminal/quantities.ts';

t.test('a number of CPUs may be a whole one', (t) => {
  t.same(['0.5', '2', '16', '1.250', 'two', '.5'].map(cpuIn), ['0.5', '2.0', '16.0', '1.250', 'two', '.5']);
  t.end();
});

t.test('a size may have a unit of Docker, Compose or Kubernetes', (t) => {
  t.same(['64m', '64M', '64mb', '64Mi', '64MiB', '1GB', '2Ki'].map(memoryIn), [
    '64m',
    '64m',
    '64m',
    '64m',
    '64m',
    '1g',
    '2k',
  ]);
  t.same(['67108864', '64b', 'much', '6.5x', '', '64'].map(memoryIn), ['67108864', '64b', 'much', '6.5x', '', '64']);
  t.end();
});

t.test('a size may have a decimal, a blank and larger units, as go-units has them', (t) => {
  const rows = ['1.5g', '0.5G', '1GiB', '512MiB', '1 g', '1t', '1.5k', '0.3k', '2.0b'];
  t.same(rows.map(memoryIn), ['1536m', '512m', '1g', '512m', '1g', '1024g', '1536', '307', '2']);
  t.end();
});
