import t from 'tap';
import { variablesIn } from '../../../../cli/apply/compose/dot-env.ts';

const shell: Readonly<Record<string, string>> = { HOME: '/root', A: 'of the shell' };
const read = (text: string) => variablesIn(text, (name) => shell[name]);

t.test('as Compose reads them', (t) => {
  const rows = [
    ['P=abc#def', { P: 'abc#def' }, 'a comment needs a blank before it'],
    ['P=abc # def\nQ=x\t# y', { P: 'abc', Q: 'x' }],
    ['P= # nothing', { P: '' }],
    ['P=#x', { P: '#x' }],
    ['P=1\nC=${P}/x\nD="x${P}y"\nE=\'x${P}y\'', { P: '1', C: '1/x', D: 'x1y', E: 'x${P}y' }],
    ['A=1\nB=$A', { A: '1', B: 'of the shell' }, 'the shell wins where a variable is filled in'],
    ['I: yaml\nJ=next', { I: 'yaml', J: 'next' }],
    ['export K=v\n  L = w  \n', { K: 'v', L: 'w' }],
    ['HOME\nNONE\nM=1', { HOME: '/root', M: '1' }, 'without a value, that of the shell'],
    ['# one\n\n   # two\nN=1\r\nO=2\r\n', { N: '1', O: '2' }],
    ['X="a\\nb\\t\\"c\\" \\$P" # end\nY=\'it\\\'s\'', { X: 'a\nb\t"c" $P', Y: "it's" }],
    ['X="line one\nline two"\nY=1', { X: 'line one\nline two', Y: '1' }],
    ['X=${NONE:-d}$NONE-5$', { X: 'd-5$' }],
    ['URL=postgres://a:b@db:5432/x?y=z', { URL: 'postgres://a:b@db:5432/x?y=z' }],
    ['\uFEFFB=1', { B: '1' }],
    ['E=\nF=""', { E: '', F: '' }],
    ['', {}],
  ] as const;
  for (const [text, found, name] of rows) t.same(read(text), found, name ?? text);
  t.end();
});

t.test('a line that is none is named', (t) => {
  for (const [text, message] of [
    ['A=1\nB C', 'line 2: it must be NAME=value'],
    ['A=1\n\n=x', 'line 3: it must be NAME=value'],
    ['A="x', 'line 1: its quotes are not closed'],
    ['A="x"y', 'line 1: only a comment may follow the quotes'],
    ['A=${1}', /^line 1: "\$\{1\}" is no variable/],
  ] as const)
    t.throws(() => read(text), { name: 'BadLine', message }, text);
  t.end();
});
