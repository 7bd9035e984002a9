import t from 'tap';
import { envFileIn, pairsIn } from '../../../cli/tenant/run.ts';

t.test('variables: with a value, or from the shell', (t) => {
  t.same(pairsIn(['A=1', 'B=x=y', 'C=', 'HOME'], { HOME: '/home/ada' }), {
    A: '1',
    B: 'x=y',
    C: '',
    HOME: '/home/ada',
  });
  t.throws(() => pairsIn(['NOT_SET'], {}), {
    name: 'WrongUsage',
    message: '--env NOT_SET: give it a value (NOT_SET=...), or set it in this shell',
  });
  t.end();
});

t.test('a file of variables', (t) => {
  t.same(envFileIn('f', '# words\n\nA=1\r\nB=x = y\n'), { A: '1', B: 'x = y' });
  t.throws(() => envFileIn('web.env', 'A=1\nB\n'), {
    name: 'WrongUsage',
    message: 'web.env:2: a line must be NAME=value',
  });
  t.throws(() => envFileIn('web.env', '=1'), { name: 'WrongUsage' });
  t.end();
});
