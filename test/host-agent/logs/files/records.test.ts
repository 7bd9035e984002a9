import fc from 'fast-check';
import t from 'tap';
import { beginning } from '../../../../host-agent/logs/files/place.ts';
import { RecordReader, timeAtEnd, logRecordBytes } from '../../../../host-agent/logs/files/records.ts';
import type { Line } from '../../../../host-agent/logs/lines.ts';
import { isUpTo } from '../../../../host-agent/logs/resume.ts';
import { limits } from '../../../../schemas/limits.ts';
import { anyStream, base, cut, fractions, seed, stamp } from '../../support/log-lines.ts';
import { recordOf, type LogRecord } from './engine-log.ts';

const read = (...records: [number, 'stdout' | 'stderr', string][]): Line[] =>
  new RecordReader(beginning('f')).push(
    Buffer.from(records.map(([micros, stream, log]) => recordOf({ micros, stream, log })).join('')),
  );
const placed = ({ ts, stream, nth, text }: Line) => ({ ts, stream, nth, text });

t.test('a record is a line with the engine’s time, without its newline', (t) => {
  const lines = read([base, 'stdout', 'hello\n'], [base + 5, 'stderr', '\n'], [base + 60, 'stdout', '<a> "b"\t€ \n']);
  t.match(lines, [
    { ts: stamp(base), stream: 'stdout', text: 'hello', nth: 0, bytes: 5 },
    { ts: stamp(base + 5), stream: 'stderr', text: '' },
    { ts: stamp(base + 60), text: '<a> "b"\t€ ', bytes: 12 },
  ]);
  t.end();
});

t.test('lines of about 16 KiB, where the engine cuts them', (t) => {
  const size = limits.logLineBytes;
  const whole = 'x'.repeat(size);
  const table: [string, string[], number[]][] = [
    ['exactly', [whole, '\n'], [size]],
    ['one byte more', [whole, 'x\n'], [size, 1]],
    ['twice', [whole, whole, '\n'], [size, size]],
    ['and an empty line behind it', [whole, '\n', '\n'], [size, 0]],
    ['not UTF-8: three bytes each in the file', ['\ufffd'.repeat(size), '\n'], [5461, 1, 5461, 1, 5461]],
  ];
  for (const [what, logs, lengths] of table) {
    const lines = read(...logs.map((log): [number, 'stdout', string] => [base, 'stdout', log]));
    if (what.startsWith('not')) t.ok(lines.every(({ bytes }) => bytes <= size + 3));
    else
      t.same(
        lines.map(({ text }) => text.length),
        lengths,
        what,
      );
    t.same(
      lines.map(({ nth }) => nth),
      lines.map((_, index) => index),
      `${what}: each has its own place`,
    );
  }
  t.end();
});

const anyRecords: fc.Arbitrary<LogRecord[]> = fc
  .array(
    fc.record({
      stream: anyStream,
      step: fc.integer({ min: 1, max: 2_000_000 }),
      parts: fc.array(fc.string({ unit: 'grapheme', maxLength: 12 }), { minLength: 1, maxLength: 3 }),
      isCutAtEnd: fc.boolean(),
    }),
    { maxLength: 25 },
  )
  .map((lines) => {
    let micros = base;
    return lines.flatMap(({ stream, step, parts, isCutAtEnd }) => {
      micros += step;
      const logs = isCutAtEnd ? [...parts, '\n'] : [...parts.slice(0, -1), `${parts.at(-1)}\n`];
      return logs.map((log) => ({ stream, micros, log }));
    });
  });

t.test('wherever its bytes are cut, a file is read to the same lines', (t) => {
  fc.assert(
    fc.property(anyRecords, fractions, (records, at) => {
      const bytes = Buffer.from(records.map(recordOf).join(''));
      const whole = new RecordReader(beginning('f')).push(bytes);
      const reader = new RecordReader(beginning('f'));
      t.same(
        cut(bytes, at).flatMap((chunk) => reader.push(chunk)),
        whole,
      );
      t.equal(reader.place.offset, bytes.length);
      t.equal(reader.damaged, 0);
    }),
    { numRuns: 300, seed },
  );
  t.end();
});

t.test('read on after any line, a file gives the lines after it, each at its place', (t) => {
  fc.assert(
    fc.property(anyRecords, (records) => {
      const bytes = Buffer.from(records.map(recordOf).join(''));
      const whole = new RecordReader(beginning('f')).push(bytes);
      for (const [index, line] of whole.entries()) {
        const { at } = line;
        if (at === undefined) throw new Error('a line of a file without its place');
        const rest = new RecordReader(at).push(bytes.subarray(at.offset));
        t.same(rest.filter((next) => !isUpTo(next, line)).map(placed), whole.slice(index + 1).map(placed));
        const before = bytes.subarray(Math.max(0, at.offset - limits.logRecordTimeBytes), at.offset);
        t.equal(timeAtEnd(before), at.ts, 'the time before the place is that of its record');
      }
    }),
    { numRuns: 300, seed },
  );
  t.end();
});

t.test('the rest of a crash in a file is skipped and counted', (t) => {
  const record = (log: string) => recordOf({ log, stream: 'stdout', micros: base });
  const table: [string, string, string[], number][] = [
    ['a record cut by a crash of the engine', `${record('a\n').slice(0, 12)}${record('b\n')}`, ['b'], 1],
    ['zeros after a crash of the machine', `${record('a\n')}${'\0'.repeat(5000)}${record('b\n')}`, ['a', 'b'], 1],
    ['another format', `{"hello":1}\n${record('b\n')}`, ['b'], 1],
    ['no time', `${record('a\n').replace('2026', 'last year')}${record('b\n')}`, ['b'], 1],
    ['a text like a record', record('{"log":"x"}\n'), ['{"log":"x"}'], 0],
    ['bytes without an end', `${'x'.repeat(3 * logRecordBytes)}\n${record('b\n')}`, ['b'], 1],
  ];
  for (const [what, content, texts, damaged] of table) {
    const reader = new RecordReader(beginning('f'));
    const bytes = Buffer.from(content);
    const half = bytes.length / 2;
    const lines = [bytes.subarray(0, half), bytes.subarray(half)].flatMap((chunk) => reader.push(chunk));
    t.same(
      lines.map(({ text }) => text),
      texts,
      what,
    );
    t.equal(reader.damaged, damaged, what);
    t.equal(reader.place.offset, bytes.length, what);
  }
  t.end();
});
