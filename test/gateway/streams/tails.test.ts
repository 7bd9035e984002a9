import t from 'tap';
import { newestOf, type LogLine } from '../../../gateway/streams/log-lines.ts';
import { longer, Tails, tailFreshMs, type ItemKind } from '../../../gateway/streams/tails.ts';
import { limits } from '../../../schemas/limits.ts';

const lines = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => ({ seq: from + at, json: `{"seq":${from + at}}` }));
const seqsOf = (some: readonly { readonly seq: number }[]): number[] => some.map(({ seq }) => seq);

const kind: ItemKind<LogLine> = {
  newestIn: () => [],
  newestOf,
  bytesOf: () => 1,
  most: limits.logsMax,
};

function stage() {
  const now = { ms: 0 };
  const clock = { nowMs: () => 0, monotonicMs: () => now.ms };
  return { now, tails: new Tails(clock, kind) };
}

t.test('a tail serves reads of at most its lines, or any where there are no others', (t) => {
  const { tails } = stage();
  const tail = { items: lines(1, 50), isWhole: false, next: 9 };
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
  tails.keep('a', { items: lines(1, 50), isWhole: false, next: 9 }, 0);
  now.ms = tailFreshMs - 1;
  const known = tails.of('a', 50);
  if (known === undefined) throw new Error('it ended too early');
  tails.replace('a', known, longer(known, lines(51, 52), 10, kind));
  t.equal(tails.of('a', 50)?.items.length, 52);
  tails.replace('a', known, { items: [], isWhole: true, next: 1 });
  t.equal(tails.of('a', 50)?.items.length, 52, 'another read was first');
  now.ms++;
  t.equal(tails.of('a', 50), undefined);
  t.end();
});

t.test('lines are added to a tail, up to the most that a page has', (t) => {
  const whole = { items: lines(1, 2), isWhole: true, next: 3 };
  const more = longer(whole, [...lines(2, 3), ...lines(5, 5)], 7, kind);
  t.same({ ...more, items: seqsOf(more.items) }, { items: [1, 2, 3, 5], isWhole: true, next: 7 });
  const late = longer({ ...whole, items: lines(5, 6) }, lines(4, 4), 7, kind);
  t.same(seqsOf(late.items), [4, 5, 6], 'as a read of the stream would have them');
  const full = longer(whole, lines(3, limits.logsMax + 1), 8, kind);
  t.match(full, { items: { length: limits.logsMax }, isWhole: false });
  t.equal(full.items[0]?.seq, 2);
  t.end();
});
