import fc from 'fast-check';
import t from 'tap';
import { lastLinesOf, linesOf, newestOf } from '../../../gateway/streams/log-lines.ts';
import type { LogEntry } from '../../../schemas/api/log.ts';

const ts = '2026-01-01T00:00:00.000Z';
const entry = (seq: number, line = `line ${seq}`): LogEntry => ({ ts, stream: 'stdout', line, seq });
const block = (lines: readonly unknown[]): Buffer => Buffer.from(JSON.stringify({ v: 1, lines }));
const lineOf = (one: LogEntry) => ({ seq: one.seq, json: JSON.stringify(one) });
const seqsOf = (lines: readonly { readonly seq: number }[]): number[] => lines.map(({ seq }) => seq);

t.test('the last lines of a block are those that the whole block ends with', (t) => {
  /** Texts that contain what is between lines, and what ends a block. */
  const text = fc
    .array(fc.constantFrom('},{', '},{"ts":"', '"', '\\', '"seq":9}', ']}', '[', 'ü', '\u2028', '\n', 'x'), {
      maxLength: 6,
    })
    .map((parts) => parts.join(''));
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 8 }), fc.integer({ min: 1, max: 10 }), (texts, count) => {
      const entries = texts.map((line, at) => entry(at + 1, line));
      const last = lastLinesOf(block(entries), count);
      t.same(last.slice(-count), entries.map(lineOf).slice(-count));
      t.ok(last.length <= Math.max(count, entries.length));
    }),
  );
  t.end();
});

t.test('lines that are not asked for are not decoded', (t) => {
  const damaged = Buffer.from(
    block([entry(1), entry(2), entry(3)])
      .toString()
      .replace('line 1', 'line \u0001'),
  );
  t.same(seqsOf(lastLinesOf(damaged, 2)), [2, 3]);
  t.throws(() => lastLinesOf(damaged, 3), { name: 'DecodeError' });
  t.throws(() => linesOf(damaged), { name: 'DecodeError' });
  t.end();
});

t.test('a block of another form is read as a whole', (t) => {
  const spaced = Buffer.from(JSON.stringify({ lines: [entry(1), entry(2)], v: 1 }, undefined, 1));
  t.same(seqsOf(lastLinesOf(spaced, 1)), [1, 2]);
  t.same(seqsOf(lastLinesOf(block([entry(5), entry(9), entry(7), entry(6)]), 2)), [5, 9, 7, 6], 'not in order');
  const turned = [3, 4].map((seq) => ({ seq, line: '', stream: 'stdout', ts }));
  t.same(seqsOf(lastLinesOf(block(turned), 1)), [3, 4]);
  t.end();
});

t.test('a malformed line gives none of its block', (t) => {
  for (const lines of [
    [entry(1), { ...entry(2), stream: 'both' }],
    [entry(1), { ...entry(2), ts: 'today' }],
    [entry(1), { ...entry(2), more: 1 }],
    [entry(1), { ...entry(2), seq: '2' }],
  ]) {
    t.throws(() => lastLinesOf(block(lines), 1), { name: 'DecodeError' });
  }
  for (const text of ['', ']}', '},{"ts":"]}', '{"v":1,"lines":[]}', '{"v":2,"lines":[{},{"ts":"]}']) {
    t.throws(() => lastLinesOf(Buffer.from(text), 1), { name: 'DecodeError' }, text);
  }
  t.end();
});

t.test('the newest lines are in order, each number once', (t) => {
  const lines = (...seqs: number[]) => seqs.map((seq) => lineOf(entry(seq)));
  t.same(seqsOf(newestOf(lines(3, 1, 2, 3), 2)), [2, 3]);
  t.same(seqsOf(newestOf(lines(1, 2, 3), 2)), [2, 3]);
  t.same(seqsOf(newestOf(lines(1, 2), 5)), [1, 2]);
  t.same(newestOf([], 5), []);
  t.end();
});
