import t from 'tap';
import { entriesAbove, newestOf } from '../../../gateway/streams/logs.ts';
import type { LogEntry } from '../../../schemas/api/log.ts';

const entry = (seq: number): LogEntry => ({
  ts: new Date(seq / 1000).toISOString(),
  stream: seq % 2 === 0 ? 'stdout' : 'stderr',
  line: `line ${seq} \u2028 "ü"`,
  seq,
});

t.test('the newest lines are in order, each number once', (t) => {
  t.same(
    newestOf([entry(3), entry(1), entry(2), entry(3)], 2).map(({ seq }) => seq),
    [2, 3],
  );
  t.end();
});

t.test('a follower gets the lines above its last one; a malformed block is counted and skipped', (t) => {
  const message = (lines: unknown) => ({
    subject: 'host.h1.log.t.c',
    sequence: 1,
    operation: '',
    data: Buffer.from(JSON.stringify({ v: 1, lines })),
  });
  let malformed = 0;
  const above = entriesAbove(
    [message([entry(1), entry(2)]), message('x'), message([entry(2), entry(4)])],
    1,
    () => malformed++,
  );
  t.same(
    above.entries.map(({ seq }) => seq),
    [2, 4],
  );
  t.same([above.lastSeq, malformed], [4, 1]);
  t.end();
});
