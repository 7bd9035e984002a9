/** Texts and their words by mattn/go-shellwords, which Compose splits commands with. */
import t from 'tap';
import { wordsIn } from '../../../../cli/apply/compose/words.ts';

t.test('words', (t) => {
  const rows: readonly (readonly [text: string, words: readonly string[] | undefined])[] = [
    ['', []],
    ['  ', []],
    ['var --bar=baz', ['var', '--bar=baz']],
    ['var --bar="baz"', ['var', '--bar=baz']],
    ['var "--bar=baz"', ['var', '--bar=baz']],
    [`var "--bar='baz'"`, ['var', "--bar='baz'"]],
    ['var --bar=`baz`', ['var', '--bar=`baz`']],
    ['var "--bar=\\"baz\'"', ['var', `--bar="baz'`]],
    [`var "--bar=\\'baz\\'"`, ['var', "--bar='baz'"]],
    ['var --bar=\\', undefined],
    [`var --bar='\\'`, ['var', '--bar=\\']],
    ["var --bar 'a\tb'\nnext\r", ['var', '--bar', 'a\tb', 'next']],
    ['a\\tb a\\ b', ['a\tb', 'a b']],
    ['a "" b \'\'', ['a', '', 'b', '']],
    ['a"b c"d', ['ab cd']],
    ['echo $(date +%s) x', ['echo', '$(date +%s)', 'x']],
    ['echo "a (b)"', ['echo', 'a (b)']],
    ['echo `a b` c', ['echo', '`a b`', 'c']],
    ['echo ${A:-b} $A', ['echo', '${A:-b}', '$A']],
    ["foo '", undefined],
    ['foo "', undefined],
    ['foo `', undefined],
    ['foo $(a', undefined],
    ['foo (a)', undefined],
    ['foo )', undefined],
    ['é "ü ö"', ['é', 'ü ö']],
  ];
  for (const [text, words] of rows) t.same(wordsIn(text)?.words, words, text);
  t.end();
});

t.test('nothing is read behind an operator of a shell', (t) => {
  const rows = [
    ['a; b', ['a'], '; b'],
    ['a && b', ['a'], '&& b'],
    ['a|b', ['a'], '|b'],
    ['a 2>/dev/null', ['a'], '>/dev/null'],
    ['a2>b', ['a2'], '>b'],
    ['sh -c "a; b" > c', ['sh', '-c', 'a; b'], '> c'],
  ] as const;
  for (const [text, words, rest] of rows) t.same(wordsIn(text), { words, rest }, text);
  t.equal(wordsIn('a "; b"')?.rest, undefined);
  t.end();
});
