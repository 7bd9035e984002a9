import t from 'tap';
import { linesAbove, newestIn } from '../../../gateway/streams/logs.ts';
import type { LogEntry } from '../../../schemas/api/log.ts';

const entry = (seq: number): LogEntry => ({
  ts: new Date(seq / 1000).toISOString(),
  stream: seq % 2 === 0 ? 'stdout' : 'stderr',
  line: `line ${seq} \u2028 "ü"`,
  seq,
});
const message = (lines: unknown) => ({
  subject: 'host.h1.log.t.c',
  sequence: 1,
  operation: '',
  head: { get: () => '' },
  data: Buffer.from(JSON.stringify({ v: 1, lines })),
});
const seqsOf = (lines: readonly { readonly seq: number }[]): number[] => lines.map(({ seq }) => seq);

t.test('a follower gets the lines above its last one; a malformed block is counted and skipped', (t) => {
  let malformed = 0;
  const above = linesAbove(
    [message([entry(1), entry(2)]), message('x'), message([entry(2), entry(4)])],
    1,
    () => malformed++,
  );
  t.same(
    above.lines,
    [2, 4].map(entry).map((one) => ({ seq: one.seq, json: JSON.stringify(one) })),
  );
  t.same([above.lastSeq, malformed], [4, 1]);
  t.end();
});

t.test('the newest lines are those of the last blocks, each number once', (t) => {
  let malformed = 0;
  const newest = (limit: number) =>
    seqsOf(
      newestIn(
        // An agent whose acknowledgement was lost sends its block again.
        [message('x'), message([1, 2].map(entry)), message([3, 4].map(entry)), message([3, 4].map(entry))],
        limit,
        () => malformed++,
      ),
    );
  t.same(newest(1), [4]);
  t.same(newest(3), [2, 3, 4]);
  t.equal(malformed, 0, 'blocks before those are not decoded');
  t.same(newest(9), [1, 2, 3, 4]);
  t.equal(malformed, 1);
  t.end();
});
