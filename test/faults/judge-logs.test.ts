/** The judgement of logs notices what it is there for. */
import t from 'tap';
import { limits } from '../../schemas/limits.ts';
import type { LogEntry } from '../../schemas/api/log.ts';
import { logFaults } from './judge-logs.ts';

const entry = (line: string, second: number, stream: LogEntry['stream'] = 'stdout'): LogEntry => ({
  ts: `2026-01-01T00:00:${String(second).padStart(2, '0')}.000000000Z`,
  stream,
  line,
  seq: second,
});
const lost = entry('[longshore] lines written between then and now were lost: they were rotated away', 3, 'stderr');
const written = [
  { container: 'c1', prefix: 'old', lines: 3, writtenMs: [1, 2, 3], isRemoved: false },
  { container: 'c1', prefix: 'new', lines: 2, writtenMs: [2, 4], isRemoved: false },
];
const good = ['old 1', 'old 2', 'new 1', 'new 2', 'old 3'].map((line, index) => entry(line, index));
const without = (...lines: string[]): LogEntry[] => good.filter(({ line }) => !lines.includes(line));

t.test('faults of a log', (t) => {
  const cases: [string, readonly LogEntry[], readonly (string | RegExp)[]][] = [
    ['each line once and in order, of two copies in turn', good, []],
    ['a line that came twice', [...good, entry('old 3', 9)], [/line 3 of old comes again or late, after 3/]],
    ['the log of a copy again', [...good, entry('old 1', 9)], [/line 1 of old comes again or late, after 3/]],
    ['a line that is missing', without('old 2'), [/old lacks the lines 2 to 2/]],
    ['the last line of a copy is missing', without('new 2'), [/new wrote 2 lines, and 1 came/]],
    ['nothing of a copy came', without('new 1', 'new 2'), [/new wrote 2 lines, and 0 came/]],
    ['lines that the agent says are lost', [...without('old 2', 'old 3'), lost, entry('old 3', 9)], []],
    ['the end of a log that the agent says is lost', [...without('old 3'), lost], []],
    ['a line of another container', [...good, entry('other 1', 9)], [/of no copy of it: other 1/]],
    [
      'a copy that was read too late',
      [good[0]!, good[2]!, good[1]!, good[3]!, good[4]!],
      [/old 2 of .* comes after a line of/],
    ],
  ];
  for (const [name, entries, faults] of cases) t.match(logFaults('c1', written, entries), faults, name);
  for (const [name, entries, faults] of cases) t.equal(logFaults('c1', written, entries).length, faults.length, name);
  t.end();
});

t.test('a container that a person removed may lack its last lines, and no others', (t) => {
  const removed = written.map((series) => ({ ...series, isRemoved: series.prefix === 'new' }));
  t.same(logFaults('c1', removed, without('new 2')), []);
  t.same(logFaults('c1', removed, without('new 1', 'new 2')), []);
  t.equal(logFaults('c1', removed, without('new 1')).length, 1);
  t.equal(logFaults('c1', removed, without('old 3')).length, 1);
  t.end();
});

t.test('the oldest blocks of a long log may be gone', (t) => {
  const many = Array.from({ length: limits.logBlocksPerContainer + 5 }, (_, index) => entry(`old ${index + 1}`, 1));
  const long = [{ container: 'c1', prefix: 'old', lines: many.length, writtenMs: many.map(() => 1), isRemoved: false }];
  t.same(logFaults('c1', long, many.slice(5)), []);
  t.equal(logFaults('c1', long, many.slice(6)).length, 1, 'fewer than are kept');
  t.equal(logFaults('c1', long, [...many.slice(3, 7), ...many.slice(8)]).length, 1);
  t.end();
});

t.test('lines of a time that the stream forgot may be missing, and no others', (t) => {
  const forgotten = [{ fromMs: 2, toMs: 3 }];
  t.same(logFaults('c1', written, without('old 2', 'old 3', 'new 1'), forgotten), []);
  t.match(logFaults('c1', written, without('old 1', 'old 2'), forgotten), [/old lacks the lines 1 to 2/]);
  t.match(logFaults('c1', written, without('new 1', 'new 2'), forgotten), [/new wrote 2 lines, and 0 came/]);
  t.end();
});
