import t from 'tap';
import { rawVariablesIn, variablesIn } from '../../../../cli/apply/compose/dot-env.ts';

const shell: Readonly<Record<string, string>> = { HOME: '/root', A: 'of the shell' };
const valueOf = (name: string) => shell[name];
const read = (text: string) => variablesIn(text, valueOf);

t.test('as Compose reads them', (t) => {
  const rows = [
    ['P=abc#def', { P: 'abc#def' }, 'a comment needs a blank before it'],
    ['P=abc # def\nQ=x #y\nR=bar #', { P: 'abc', Q: 'x', R: 'bar' }],
    ['P= # x\nQ=x\t# y', { P: '# x', Q: 'x\t# y' }, 'and a value before that blank'],
    ['P=#x', { P: '#x' }],
    ['P=1\nC=${P}/x\nD="x${P}y"\nE=\'x${P}y\'', { P: '1', C: '1/x', D: 'x1y', E: 'x${P}y' }],
    ['A=1\nB=$A', { A: '1', B: 'of the shell' }, 'the shell wins where a variable is filled in'],
    ['I: yaml\nJ=next\nK: a=b\nL=1:b', { I: 'yaml', J: 'next', K: 'a=b', L: '1:b' }],
    [
      'export K=v\n  L = w  \n\texport\tM=x\nexportN=1\nexport_O =2',
      { K: 'v', L: 'w', M: 'x', exportN: '1', export_O: '2' },
    ],
    ['HOME\nNONE\nM=1', { HOME: '/root', M: '1' }, 'without a value, that of the shell'],
    ['# one\n\n   # two\nN=1\r\nO=2\r\n\t\t \n', { N: '1', O: '2' }],
    ['X="a\\nb\\t\\"c\\" \\$P" # end\nY=\'it\\\'s\'', { X: 'a\nb\t"c" $P', Y: "it's" }],
    ['X="line one\nline two"\nY=1', { X: 'line one\nline two', Y: '1' }],
    ["X = 'first\nsecond'\nY=\"echo 'a'\"#", { X: 'first\nsecond', Y: "echo 'a'" }],
    ['X=${NONE:-d}$NONE-5$', { X: 'd-5$' }],
    ['N=x\nX="a\\${N} ${N} $$N"', { N: 'x', X: 'a${N} x $N' }],
    ['URL=postgres://a:b@db:5432/x?y=z', { URL: 'postgres://a:b@db:5432/x?y=z' }],
    ['\uFEFFB=1', { B: '1' }],
    ['E=\nF=""\nG= ', { E: '', F: '', G: '' }],
    ['a[1]=c\na.b=d\nV-W=e\n456 = f\nárvíz=ő', { 'a[1]': 'c', 'a.b': 'd', 'V-W': 'e', '456': 'f', árvíz: 'ő' }],
    ['B=first one with words\nC="VAL # not a comment"', { B: 'first one with words', C: 'VAL # not a comment' }],
    ['B=a\\tb\nC=\'a\\tb\'\nD="a\\tb"', { B: 'a\\tb', C: 'a\\tb', D: 'a\tb' }],
    ['J="{\\"hello\\": \\"json\\"}"', { J: '{"hello": "json"}' }],
    ['Z="\\a\\b\\f\\n\\r\\t\\v\\\\\\0123"', { Z: '\u0007\b\f\n\r\t\v\\S' }],
    ['Z="\\x07 \\u12e4 \\c \\ b"', { Z: '\\x07 \\u12e4 \\c \\ b' }, 'other escapes are none'],
    ['', {}],
  ] as const;
  for (const [text, found, name] of rows) t.same(read(text), found, name ?? text);
  t.end();
});

t.test('a line that is none is named', (t) => {
  for (const [text, message] of [
    ['A=1\nB C', 'line 2: it must be NAME=value'],
    ['A="\n\n"\nINVALID LINE\nB=1', 'line 4: it must be NAME=value'],
    ['A=1\n\n=x', 'line 3: it must be NAME=value'],
    ['lol$wut', 'line 1: it must be NAME=value'],
    ['%!(EXTRA string)=foo', 'line 1: it must be NAME=value'],
    ['A="x', 'line 1: its quotes are not closed'],
    ['A="', 'line 1: its quotes are not closed'],
    ["A='x\\'", 'line 1: its quotes are not closed'],
    ['A="x\'', 'line 1: its quotes are not closed'],
    ['A="x"y', 'line 1: only a comment may follow the quotes'],
    ['A=${1}', /^line 1: "\$\{1\}" is no variable/],
    ['A=${NONE:?set it}', /^line 1: the variable NONE is not set: set it/],
  ] as const)
    t.throws(() => read(text), { name: 'BadLine', message }, text);
  t.end();
});

t.test('a file that is read as it is: no quotes, no variables, no comments behind values', (t) => {
  const raw = (text: string) => rawVariablesIn(text, valueOf);
  t.same(raw('\uFEFF# words\n\nA="$HOME" # x \r\n  B=x = y\nC=\nHOME\nNONE\n'), {
    A: '"$HOME" # x ',
    B: 'x = y',
    C: '',
    HOME: '/root',
  });
  for (const text of ['=1', 'A\nB C=1'])
    t.throws(() => raw(text), { name: 'BadLine', message: /^line \d: it must be NAME=value/ }, text);
  t.end();
});
