/** Silences of answers, and how much of one is explained by others. */
import t from 'tap';
import { coveredMs, silences, type Span } from './silence.ts';

const span = (fromMs: number, toMs: number): Span => ({ fromMs, toMs });

t.test('silences of a span', (t) => {
  const cases: readonly (readonly [string, readonly number[], readonly Span[]])[] = [
    ['no answer', [], [span(10, 50)]],
    ['answers in any order', [40, 20], [span(10, 20), span(20, 40), span(40, 50)]],
    ['answers outside do not count', [5, 30, 60], [span(10, 30), span(30, 50)]],
  ];
  for (const [name, answers, expected] of cases) t.same(silences(answers, span(10, 50)), expected, name);
  t.end();
});

t.test('the part of a span that others cover', (t) => {
  const cases: readonly (readonly [string, readonly Span[], number])[] = [
    ['nothing', [], 0],
    ['a part', [span(20, 25)], 5],
    ['only what is inside', [span(0, 15), span(45, 90)], 10],
    ['outside', [span(0, 5), span(60, 90)], 0],
    ['overlaps once', [span(30, 40), span(20, 35)], 20],
    ['one inside another', [span(20, 40), span(25, 30), span(38, 42)], 22],
    ['all of it', [span(0, 90), span(20, 30)], 40],
  ];
  for (const [name, others, expected] of cases) t.equal(coveredMs(span(10, 50), others), expected, name);
  t.end();
});
