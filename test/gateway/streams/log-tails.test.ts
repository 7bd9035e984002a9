import t from 'tap';
import { LogTails, longer } from '../../../gateway/streams/log-tails.ts';
import { limits } from '../../../schemas/limits.ts';

const lines = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => ({ seq: from + at, json: `{"seq":${from + at}}` }));
const seqsOf = (some: readonly { readonly seq: number }[]): number[] => some.map(({ seq }) => seq);

function stage() {
  const now = { ms: 0 };
  const clock = { nowMs: () => 0, monotonicMs: () => now.ms };
  return { now, tails: new LogTails(clock) };
}

t.test('a tail serves reads of at most its lines, or any where there are no others', (t) => {
  const { tails } = stage();
  const tail = { lines: lines(1, 50), isWhole: false, next: 9 };
  t.equal(tails.of('a', 1), undefined);
  tails.keep('a', tail, 0);
  t.match(tails.of('a', 50), tail);
  t.equal(tails.of('a', 51), undefined);
  t.equal(tails.of('b', 1), undefined, 'of another container');
  tails.keep('a', { ...tail, isWhole: true }, 0);
  t.match(tails.of('a', 500), { isWhole: true });
  t.end();
});

t.test('a tail ends some time after the stream was read, however often lines were added', (t) => {
  const { now, tails } = stage();
  tails.keep('a', { lines: lines(1, 50), isWhole: false, next: 9 }, 0);
  now.ms = limits.logTailFreshMs - 1;
  const known = tails.of('a', 50);
  if (known === undefined) throw new Error('it ended too early');
  tails.replace('a', known, longer(known, lines(51, 52), 10));
  t.equal(tails.of('a', 50)?.lines.length, 52);
  tails.replace('a', known, { lines: [], isWhole: true, next: 1 });
  t.equal(tails.of('a', 50)?.lines.length, 52, 'another read was first');
  now.ms++;
  t.equal(tails.of('a', 50), undefined);
  t.end();
});

t.test('lines are added to a tail, up to the most that a page has', (t) => {
  const whole = { lines: lines(1, 2), isWhole: true, next: 3 };
  const more = longer(whole, [...lines(2, 3), ...lines(5, 5)], 7);
  t.same({ ...more, lines: seqsOf(more.lines) }, { lines: [1, 2, 3, 5], isWhole: true, next: 7 });
  const late = longer({ ...whole, lines: lines(5, 6) }, lines(4, 4), 7);
  t.same(seqsOf(late.lines), [4, 5, 6], 'as a read of the stream would have them');
  const full = longer(whole, lines(3, limits.logsMax + 1), 8);
  t.match(full, { lines: { length: limits.logsMax }, isWhole: false });
  t.equal(full.lines[0]?.seq, 2);
  t.end();
});
