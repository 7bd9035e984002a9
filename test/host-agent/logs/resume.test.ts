import fc from 'fast-check';
import t from 'tap';
import { BlockQueue } from '../../../host-agent/logs/block.ts';
import { microsOf, type Line, type Place } from '../../../host-agent/logs/lines.ts';
import { Resume, sinceOf } from '../../../host-agent/logs/resume.ts';
import { anyStream, base, lineOf, linesOf, seed, stamp } from '../support/log-lines.ts';

// A log of an engine: two streams, slightly out of order; parts of a long line share a time.
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
      // The times of one stream never fall; it may be late against the other.
      at[stream] = Math.max(at[stream] + 1, clock - late);
      return Array.from({ length: parts }, (_, nth) => {
        const text = `${record}.${nth}`;
        return { ts: stamp(at[stream]), stream, nth, text, bytes: text.length };
      });
    });
  });

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

t.test('resuming after any line loses none, repeats none and keeps their numbers', (t) => {
  fc.assert(
    fc.property(anyLog, fc.double({ min: 0, max: 1, noNaN: true }), (log, fraction) => {
      const whole = numbered(log);
      const last = Math.min(log.length - 1, Math.floor(fraction * log.length));
      const place = log[last] as Place;
      const since = Number(sinceOf(place, base / 1000 + 3_600_000)) * 1_000_000;
      // The engine returns lines from `since` on, in the order of its file.
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

t.test('a place that was rotated away: later lines are new, and the gap is counted', (t) => {
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
  t.same(quiet.push(log[0] as Line), [], 'it may have been written out of order');
  t.equal(quiet.release().length, 1, 'it was not: the engine has nothing more');
  t.end();
});

t.test('a log is read from a little earlier, or from its beginning after a clock was set back', (t) => {
  const place = { ts: stamp(base + 5_000_000), stream: 'stdout', nth: 0 } as const;
  t.equal(sinceOf(null, 0), '0');
  t.equal(sinceOf(place, base / 1000 + 10_000), `${base / 1_000_000 + 3}.000000000`);
  t.equal(sinceOf(place, base / 1000 - 10_000), '0');
  t.end();
});

t.test('a mark shows where lost lines are missing', (t) => {
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
  t.equal(block?.lines, 2, 'the mark does not count as a line');
  t.end();
});
