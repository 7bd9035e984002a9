import t from 'tap';
import { LineReader, microsOf, nextSeq } from '../../../host-agent/logs/lines.ts';
import { limits } from '../../../schemas/limits.ts';
import { base, frameBytes, read, stamp } from '../support/log-lines.ts';

t.test('a record is a line with the engine’s time, without its newline', (t) => {
  t.match(read([base, 'stdout', 'hello\n'], [base + 5, 'stderr', '\n'], [base + 6, 'stdout', 'a b\tc \n']), [
    { ts: stamp(base), stream: 'stdout', text: 'hello', nth: 0 },
    { stream: 'stderr', text: '' },
    { text: 'a b\tc ' },
  ]);
  t.end();
});

t.test('parts of a long line are lines, and a character cut in two is whole', (t) => {
  const euro = Buffer.from('€');
  const lines = read(
    [base, 'stdout', Buffer.concat([Buffer.from('x'), euro.subarray(0, 2)])],
    [base + 1, 'stderr', 'between\n'],
    [base, 'stdout', Buffer.concat([euro.subarray(2), Buffer.from('y\n')])],
  );
  t.same(
    lines.map(({ text, nth }) => [text, nth]),
    [
      ['x', 0],
      ['between', 0],
      ['€y', 1],
    ],
  );
  t.end();
});

t.test('lines that an engine repeats appear once; lines after a clock was set back are new', (t) => {
  const at = (offset: number, text: string): [number, 'stdout', string] => [base + offset, 'stdout', text];
  const [a, b, later] = [at(10, 'a\n'), at(20, 'b\n'), at(15, 'later\n')] as const;
  const long = [at(30, 'a '), at(30, 'long '), at(30, 'line\n')] as const;
  const once = ['a', 'b', 'a ', 'long ', 'line'];
  const table: [string, Parameters<typeof read>, string[]][] = [
    ['two lines', [a, b, a, b, ...long], once],
    ['the parts of an unfinished line', [a, b, long[0], long[1], a, b, ...long], once],
    ['a whole line', [a, b, ...long, b, ...long], once],
    ['after a clock was set back', [b, ...long, a, later, a], ['b', 'a ', 'long ', 'line', 'a', 'later']],
  ];
  for (const [what, records, texts] of table) {
    t.same(
      read(...records).map(({ text }) => text),
      texts,
      what,
    );
  }
  t.end();
});

t.test('lines over 16 KiB are split, and invalid UTF-8 is replaced', (t) => {
  const long = read([base, 'stdout', `${'a'.repeat(limits.logLineBytes * 2 + 3)}\n`]);
  t.same(
    long.map(({ text, nth }) => [text.length, nth]),
    [
      [limits.logLineBytes, 0],
      [limits.logLineBytes, 1],
      [3, 2],
    ],
  );
  t.match(read([base, 'stdout', Buffer.from([0x61, 0xff, 0x62, 0x0a])]), [{ text: 'a\ufffdb' }]);
  t.end();
});

t.test('a record with only the newline of a line is not a line', (t) => {
  const full = 'a'.repeat(limits.logLineBytes);
  const rows: [string, Parameters<typeof read>, string[]][] = [
    [
      'exactly 16 KiB',
      [
        [base, 'stdout', full],
        [base, 'stdout', '\n'],
        [base + 1, 'stdout', 'next\n'],
      ],
      [full, 'next'],
    ],
    [
      'twice 16 KiB',
      [
        [base, 'stdout', full],
        [base, 'stdout', full],
        [base, 'stdout', '\n'],
      ],
      [full, full],
    ],
    [
      'followed by an empty line',
      [
        [base, 'stdout', full],
        [base, 'stdout', '\n'],
        [base + 1, 'stdout', '\n'],
      ],
      [full, ''],
    ],
    [
      'the other stream between',
      [
        [base, 'stdout', full],
        [base, 'stderr', '\n'],
        [base, 'stdout', '\n'],
      ],
      [full, ''],
    ],
    [
      'cut off, then an empty line of the next run',
      [
        [base, 'stdout', full],
        [base + 9, 'stdout', '\n'],
      ],
      [full, ''],
    ],
  ];
  for (const [name, records, expected] of rows) {
    t.same(
      read(...records).map(({ text }) => text),
      expected,
      name,
    );
  }
  t.end();
});

t.test('the engine’s own error is not a line; lines before it count', (t) => {
  const reader = new LineReader();
  const error = frameBytes({ stream: 'stdout', payload: Buffer.from('Error grabbing logs: invalid character\n') });
  error[0] = 3;
  const line = frameBytes({ stream: 'stdout', payload: Buffer.from(`${stamp(base)} hello\n`) });
  t.match(reader.push(Buffer.concat([line, error])), [{ text: 'hello' }]);
  t.equal(reader.failure, 'Error grabbing logs: invalid character');
  t.notOk(reader.isCut);
  t.end();
});

t.test('seq is the time in microseconds, and always rises', (t) => {
  t.equal(microsOf('2026-01-02T03:04:05.123456789Z'), base + 123_456);
  t.equal(microsOf('2026-01-02T03:04:05Z'), base);
  t.equal(nextSeq(0, stamp(base)), base);
  t.equal(nextSeq(base, stamp(base)), base + 1);
  t.equal(nextSeq(base + 10, stamp(base)), base + 11, 'after the clock was set back');
  t.end();
});
