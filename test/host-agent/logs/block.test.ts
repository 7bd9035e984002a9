import fc from 'fast-check';
import t from 'tap';
import { LineReader } from '../../../host-agent/logs/lines.ts';
import { limits } from '../../../schemas/limits.ts';
import { KiB } from '../../../schemas/limits/units.ts';
import { base, blocksOf, frameBytes, lineOf, linesOf, seed, stamp } from '../support/log-lines.ts';

/** One line, each of its bytes escaped as six, and an entry about lines lost before it. */
const blockBytesMax = 6 * limits.logLineBytes + 2 * KiB;

t.test('blocks are bounded in lines and bytes, and lose no line', (t) => {
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

t.test('whatever bytes a container writes, blocks stay bounded and lose none', (t) => {
  // Bytes that JSON escapes, invalid UTF-8, characters of four bytes, and plain ones.
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
      // The engine keeps records of at most 16 KiB; the last ends with the newline.
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
        if (bytes > blockBytesMax || (lines > 1 && bytes > limits.logBlockBytes)) return false;
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
