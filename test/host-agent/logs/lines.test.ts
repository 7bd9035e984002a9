import fc from 'fast-check';
import t from 'tap';
import { Demultiplexer, type Frame } from '../../../host-agent/docker/demux.ts';
import { lines as ndjson } from '../../../host-agent/docker/ndjson.ts';
import { BlockQueue, type Block } from '../../../host-agent/logs/block.ts';
import { LineReader, microsOf, nextSeq, type Line, type Place } from '../../../host-agent/logs/lines.ts';
import { Resume, sinceOf } from '../../../host-agent/logs/resume.ts';
import { createTail } from '../../../host-agent/logs/tail.ts';
import { decoder } from '../../../lib/decode.ts';
import { limits } from '../../../schemas/limits.ts';
import { LogBlock, type LogEntry } from '../../../schemas/api/log.ts';

const decodeBlock = decoder(LogBlock);
const seed = Number(process.env['LONGSHORE_TEST_SEED'] ?? 20_260_102);

const frameBytes = ({ stream, payload }: { stream: 'stdout' | 'stderr'; payload: Uint8Array }): Buffer => {
  const header = Buffer.alloc(8);
  header[0] = stream === 'stderr' ? 2 : 1;
  header.writeUInt32BE(payload.byteLength, 4);
  return Buffer.concat([header, payload]);
};

/** Cuts bytes at the given fractions. */
const cut = (bytes: Buffer, at: readonly number[]): Buffer[] => {
  const places = [0, ...at.map((fraction) => Math.floor(fraction * bytes.length)).sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end));
};

const stamp = (micros: number): string => {
  const nanos = String(micros % 1_000_000).padStart(6, '0');
  return `${new Date(Math.floor(micros / 1_000_000) * 1000).toISOString().slice(0, 19)}.${nanos}000Z`;
};
const base = Date.parse('2026-01-02T03:04:05Z') * 1000;

const anyStream = fc.constantFrom('stdout' as const, 'stderr' as const);
const fractions = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 20 });

t.test('frames come out as they went in, however the bytes are cut', (t) => {
  const anyFrame = fc.record({ stream: anyStream, payload: fc.uint8Array({ maxLength: 300 }) });
  fc.assert(
    fc.property(fc.array(anyFrame, { maxLength: 20 }), fractions, (frames, at) => {
      const demultiplexer = new Demultiplexer(1000);
      const out: Frame[] = [];
      for (const chunk of cut(Buffer.concat(frames.map(frameBytes)), at)) out.push(...demultiplexer.push(chunk));
      t.same(
        out.map(({ stream, payload }) => [stream, payload.toString('hex')]),
        frames.map(({ stream, payload }) => [stream, Buffer.from(payload).toString('hex')]),
      );
      t.equal(demultiplexer.pendingBytes, 0);
    }),
    { numRuns: 200, seed },
  );
  t.end();
});

t.test('bytes that are no frames are an error, and never a hang or a large buffer', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 8, maxLength: 200 }), (bytes) => {
      const demultiplexer = new Demultiplexer(1000);
      try {
        demultiplexer.push(bytes);
      } catch (error) {
        return error instanceof Error;
      }
      return demultiplexer.pendingBytes <= 1008;
    }),
    { numRuns: 2000, seed },
  );
  t.throws(() => new Demultiplexer(1000).push(frameBytes({ stream: 'stdout', payload: Buffer.alloc(1001) })));
  t.end();
});

const read = (...frames: [number, 'stdout' | 'stderr', string | Uint8Array][]): Line[] => {
  const reader = new LineReader();
  return frames.flatMap(([micros, stream, content]) =>
    reader.push(
      frameBytes({ stream, payload: Buffer.concat([Buffer.from(`${stamp(micros)} `), Buffer.from(content)]) }),
    ),
  );
};

t.test('a record is a line, with the engine’s time and without its newline', (t) => {
  t.match(read([base, 'stdout', 'hello\n'], [base + 5, 'stderr', '\n'], [base + 6, 'stdout', 'a b\tc \n']), [
    { ts: stamp(base), stream: 'stdout', text: 'hello', nth: 0 },
    { stream: 'stderr', text: '' },
    { text: 'a b\tc ' },
  ]);
  t.end();
});

t.test('parts of a long line are lines of their own, and a character that was cut in two is whole', (t) => {
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

t.test('lines that an engine repeats are given once; those of a clock that was set back are new', (t) => {
  const at = (offset: number, text: string): [number, 'stdout', string] => [base + offset, 'stdout', text];
  const [a, b, later] = [at(10, 'a\n'), at(20, 'b\n'), at(15, 'later\n')] as const;
  const long = [at(30, 'a '), at(30, 'long '), at(30, 'line\n')] as const;
  const once = ['a', 'b', 'a ', 'long ', 'line'];
  const table: [string, Parameters<typeof read>, string[]][] = [
    ['two lines', [a, b, a, b, ...long], once],
    ['the parts of a line that goes on', [a, b, long[0], long[1], a, b, ...long], once],
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

t.test('over 16 KiB is split, bytes that are no UTF-8 are replaced', (t) => {
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

t.test('a record with only the end of a line is no line of its own', (t) => {
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

t.test('the engine’s own error is no line, and what came before it is kept', (t) => {
  const reader = new LineReader();
  const error = frameBytes({ stream: 'stdout', payload: Buffer.from('Error grabbing logs: invalid character\n') });
  error[0] = 3;
  const line = frameBytes({ stream: 'stdout', payload: Buffer.from(`${stamp(base)} hello\n`) });
  t.match(reader.push(Buffer.concat([line, error])), [{ text: 'hello' }]);
  t.equal(reader.failure, 'Error grabbing logs: invalid character');
  t.notOk(reader.isCut);
  t.end();
});

t.test('seq: microseconds, made to rise', (t) => {
  t.equal(microsOf('2026-01-02T03:04:05.123456789Z'), base + 123_456);
  t.equal(microsOf('2026-01-02T03:04:05Z'), base);
  t.equal(nextSeq(0, stamp(base)), base);
  t.equal(nextSeq(base, stamp(base)), base + 1);
  t.equal(nextSeq(base + 10, stamp(base)), base + 11, 'after a clock that was set back');
  t.end();
});

// What an engine has in its log: two streams, a little out of order, parts of long lines sharing a
// time.
const anyLog: fc.Arbitrary<Line[]> = fc
  .array(
    fc.record({
      stream: anyStream,
      step: fc.integer({ min: 0, max: 500_000 }),
      late: fc.integer({ min: 0, max: 300_000 }),
      parts: fc.integer({ min: 1, max: 3 }),
    }),
    { minLength: 1, maxLength: 40 },
  )
  .map((records) => {
    const at = { stdout: base, stderr: base };
    let clock = base;
    return records.flatMap(({ stream, step, late, parts }, record) => {
      clock += step;
      // One stream's own times never fall; against the other it may be late.
      at[stream] = Math.max(at[stream] + 1, clock - late);
      return Array.from({ length: parts }, (_, nth) => {
        const text = `${record}.${nth}`;
        return { ts: stamp(at[stream]), stream, nth, text, bytes: text.length };
      });
    });
  });

const linesOf = ({ payload }: Pick<Block, 'payload'>): LogEntry[] => decodeBlock(Buffer.from(payload)).lines;

const numbered = (lines: readonly Line[], after = 0): { text: string; seq: number }[] => {
  const queue = new BlockQueue(after);
  queue.push(lines);
  queue.end();
  const entries: { text: string; seq: number }[] = [];
  for (let block = queue.take(); block !== undefined; block = queue.take()) {
    entries.push(...linesOf(block).map(({ line, seq }) => ({ text: line, seq })));
  }
  return entries;
};

t.test('going on from any line: nothing lost, nothing twice, and every line bears the number it had', (t) => {
  fc.assert(
    fc.property(anyLog, fc.double({ min: 0, max: 1, noNaN: true }), (log, fraction) => {
      const whole = numbered(log);
      const last = Math.min(log.length - 1, Math.floor(fraction * log.length));
      const place = log[last] as Place;
      const since = Number(sinceOf(place, base / 1000 + 3_600_000)) * 1_000_000;
      // The engine gives what is not before `since`, in the order of its file.
      const given = log.filter(({ ts }) => microsOf(ts) >= since - 1);
      const resume = new Resume(place);
      const rest = given.flatMap((line) => resume.push(line));
      rest.push(...resume.release());
      t.same(numbered(rest, whole[last]?.seq), whole.slice(last + 1));
    }),
    { numRuns: 500, seed },
  );
  t.end();
});

t.test('a place that was rotated away: what is later counts as new, and the gap is counted', (t) => {
  const log = [5_000_000, 5_000_001, 9_000_000].map((micros): Line => ({
    ts: stamp(base + micros),
    stream: 'stdout',
    nth: 0,
    text: String(micros),
    bytes: 1,
  }));
  const resume = new Resume({ ts: stamp(base), stream: 'stdout', nth: 0 });
  t.same(log.flatMap((line) => resume.push(line)).length, 3);
  t.equal(resume.gaps, 1);

  const quiet = new Resume({ ts: stamp(base + 4_999_999), stream: 'stdout', nth: 0 });
  t.same(quiet.push(log[0] as Line), [], 'perhaps it was written out of order');
  t.equal(quiet.release().length, 1, 'no: the engine has nothing more');
  t.end();
});

t.test('since: a little earlier, from the beginning after a clock that was set back', (t) => {
  const place = { ts: stamp(base + 5_000_000), stream: 'stdout', nth: 0 } as const;
  t.equal(sinceOf(null, 0), '0');
  t.equal(sinceOf(place, base / 1000 + 10_000), `${base / 1_000_000 + 3}.000000000`);
  t.equal(sinceOf(place, base / 1000 - 10_000), '0');
  t.end();
});

const lineOf = (text: string, micros = base): Line => {
  const bytes = Buffer.byteLength(text);
  return { ts: stamp(micros), stream: 'stdout', nth: 0, text, bytes };
};

function blocksOf(lines: readonly Line[]): Block[] {
  const queue = new BlockQueue(0);
  queue.push(lines);
  const blocks: Block[] = [];
  for (let block = queue.take(); block !== undefined; block = queue.take()) blocks.push(block);
  t.equal(queue.isFull, false);
  return blocks;
}

t.test('blocks are bounded in lines and bytes, and take all', (t) => {
  const blocks = blocksOf([
    ...Array.from({ length: 1200 }, () => lineOf('x')),
    ...Array.from({ length: 10 }, () => lineOf('y'.repeat(limits.logLineBytes))),
  ]);
  t.ok(blocks.every(({ lines }) => lines <= limits.logBlockLines));
  t.ok(blocks.every(({ payload }) => Buffer.byteLength(payload) <= limits.logBlockBytes));
  t.equal(
    blocks.reduce((sum, { lines }) => sum + lines, 0),
    1210,
  );
  t.end();
});

t.test('whatever a container writes, its blocks are bounded as they are sent, and every byte of it is read', (t) => {
  // What JSON makes longer, what is no UTF-8, what takes four bytes, and the plain.
  const anyRun = fc.tuple(
    fc.constantFrom([0x01], [0x22], [0x5c], [0x7f], [0xff], [0xe2, 0x82], [...Buffer.from('\u{1f6a2}')], [0x61]),
    fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 15_000, max: 50_000 })),
  );
  const anyLine = fc
    .array(anyRun, { maxLength: 3 })
    .map((runs) => Buffer.concat(runs.map(([bytes, times]) => Buffer.alloc(bytes.length * times, Buffer.from(bytes)))));
  fc.assert(
    fc.property(fc.array(anyLine, { minLength: 1, maxLength: 12 }), (written) => {
      const reader = new LineReader();
      // As the engine keeps it: records of at most 16 KiB, the last one with the newline.
      const frames = written.flatMap((line, index) => {
        const whole = Buffer.concat([line, Buffer.from('\n')]);
        const records: Buffer[] = [];
        for (let at = 0; at < whole.length; at += limits.logLineBytes) {
          records.push(whole.subarray(at, at + limits.logLineBytes));
        }
        const ts = Buffer.from(`${stamp(base + index)} `);
        return records.map((record) => frameBytes({ stream: 'stdout', payload: Buffer.concat([ts, record]) }));
      });
      const blocks = blocksOf(reader.push(Buffer.concat(frames)));
      for (const { payload, lines } of blocks) {
        const bytes = Buffer.byteLength(payload);
        if (bytes > limits.logBlockMostBytes || (lines > 1 && bytes > limits.logBlockBytes)) return false;
      }
      const read = new Map<string, string>();
      for (const { ts, line } of blocks.flatMap(linesOf)) read.set(ts, (read.get(ts) ?? '') + line);
      t.same(
        [...read.values()],
        written.map((line) => line.toString('utf8')),
      );
      return true;
    }),
    { numRuns: 60, seed },
  );
  t.end();
});

t.test('lines that are lost show where they are missing', (t) => {
  const cursor: Place = { ts: stamp(base), stream: 'stdout', nth: 0 };
  const resume = new Resume(cursor);
  const later = [5_000_000, 9_000_000].map((micros) => lineOf(String(micros), base + micros));
  const queue = new BlockQueue(base, () => 'rate');
  queue.push(later.flatMap((line) => resume.push(line)));
  queue.push(resume.release());
  const block = queue.take();
  t.match(block === undefined ? [] : linesOf(block), [
    {
      stream: 'stderr',
      seq: base + 4_999_999,
      line: /^\[longshore\] lines written between .*:05\S+ and .*:10\S+ were lost: .* may send$/,
    },
    { stream: 'stdout', seq: base + 5_000_000, line: '5000000' },
    { stream: 'stdout', seq: base + 9_000_000, line: '9000000' },
  ]);
  t.equal(block?.lines, 2, 'the mark is no line of the container');
  t.end();
});

t.test('the end of a long log is kept, and says how much is missing before it', (t) => {
  const tail = createTail(3 * limits.logBlockBytes);
  const blocks = blocksOf(
    Array.from({ length: 5000 }, (_, index) => lineOf(`line ${index} ${'x'.repeat(40)}`, base + index)),
  );
  for (const block of blocks) tail.push(block);
  const { blocks: kept, lines, dropped } = tail.kept();
  t.equal(lines + dropped, 5000);
  t.ok(kept.reduce((sum, payload) => sum + payload.length, 0) <= 3 * limits.logBlockBytes + 512);
  const entries = kept.flatMap((payload) => linesOf({ payload }));
  t.match(entries[0], { stream: 'stderr', line: new RegExp(`^\\[longshore\\] ${dropped} lines were lost here`) });
  t.match(entries.at(-1)?.line, /^line 4999 /);
  t.ok(entries.every(({ seq }, at) => seq > (entries[at - 1]?.seq ?? 0)));
  t.end();
});

t.test('lines of JSON, however the bytes are cut', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.json(), { maxLength: 10 }), fractions, async (values, at) => {
      const bytes = Buffer.from(values.map((value) => `${value}\n`).join(''));
      const out: string[] = [];
      async function* chunks() {
        for (const chunk of cut(bytes, at)) yield await Promise.resolve(chunk);
      }
      for await (const line of ndjson(chunks(), 100_000)) out.push(line.toString());
      t.same(out, values);
    }),
    { numRuns: 100, seed },
  );
});
