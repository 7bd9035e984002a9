import t, { type Test } from 'tap';
import { filePass, type FilePassOptions, logFileBusyBytes } from '../../../../host-agent/logs/files/follow.ts';
import { createSemaphore } from '../../../../lib/semaphore.ts';
import type { Cursor } from '../../../../host-agent/logs/resume.ts';
import { limits } from '../../../../schemas/limits.ts';
import { until } from '../../../support/until.ts';
import { base, linesOf } from '../../support/log-lines.ts';
import { engineLog } from './engine-log.ts';

const fresh: Cursor = { dockerId: 'a', place: null, seq: 0 };

/** A pass whose blocks are kept. */
function following(t: Test, path: string, change: Partial<FilePassOptions> = {}) {
  const texts: string[] = [];
  const seqs: number[] = [];
  let cursor = change.cursor ?? fresh;
  const [stopping, ending] = [new AbortController(), new AbortController()];
  const done = filePass({
    path,
    cursor,
    nowMs: base / 1000 + 3_600_000,
    sink: (block) => {
      for (const { line, seq } of linesOf(block)) {
        texts.push(line);
        seqs.push(seq);
      }
      return Promise.resolve(undefined);
    },
    lossCause: () => 'late',
    advance: (next) => (cursor = next),
    openings: createSemaphore(limits.logReadersOpening),
    onGaps: (count) => t.fail(`${count} gaps`),
    onDamaged: (count) => t.fail(`${count} damaged records`),
    onHeldUp: () => undefined,
    ending: ending.signal,
    signal: stopping.signal,
    ...change,
  });
  done.catch(() => undefined);
  t.teardown(() => stopping.abort());
  return { texts, seqs, done, stop: () => stopping.abort(), end: () => ending.abort(), cursor: () => cursor };
}

const numbers = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, index) => String(from + index));

t.test('lines are told as they are written, over rotations, until the end of the container', async (t) => {
  const log = engineLog(t);
  const pass = following(t, log.path);
  for (const number of numbers(0, 400)) {
    log.say(number);
    if (Number(number) % 50 === 49) {
      // The engine keeps three files; the reader must have seen the first of them by then.
      await until(`line ${number}`, () => pass.texts.includes(number));
      log.rotate();
    }
  }
  log.say('last words');
  pass.end();
  await pass.done;
  t.same(pass.texts, [...numbers(0, 400), 'last words']);
});

t.test('a file that grows faster is read without a sign for each line', async (t) => {
  const log = engineLog(t);
  const pass = following(t, log.path);
  const long = 'x'.repeat(logFileBusyBytes / 4);
  const total = 40;
  for (const number of numbers(0, total)) {
    log.say(`${number} ${long}`);
    if (Number(number) % 10 === 9) await until(`line ${number}`, () => pass.texts.length > Number(number));
  }
  log.say('quiet again');
  await until('the line after it', () => pass.texts.includes('quiet again'));
  t.equal(pass.texts.length, total + 1);
});

t.test('a pass that is broken off and another from its cursor: each line once, with the same number', async (t) => {
  const log = engineLog(t);
  for (const number of numbers(0, 2000)) log.say(number);
  const whole = following(t, log.path);
  whole.end();
  await whole.done;
  const first = following(t, log.path, {
    sink: (block, signal) => {
      first.texts.push(...linesOf(block).map(({ line }) => line));
      first.seqs.push(...linesOf(block).map(({ seq }) => seq));
      if (first.texts.length >= 1000) queueMicrotask(first.stop);
      return Promise.resolve(signal.aborted ? 'late' : undefined);
    },
  });
  await first.done;
  const kept = first.seqs.indexOf(first.cursor().seq) + 1;
  t.ok(kept > 0 && kept < 2000, `${kept} lines are safe`);
  log.rotate();
  const second = following(t, log.path, { cursor: first.cursor() });
  second.end();
  await second.done;
  t.same([...first.texts.slice(0, kept), ...second.texts], numbers(0, 2000));
  t.same([...first.seqs.slice(0, kept), ...second.seqs], whole.seqs);
});

t.test('gaps of a reader are reported: lost lines, damaged records, a delay', async (t) => {
  const log = engineLog(t);
  log.say('a');
  const before = following(t, log.path);
  before.end();
  await before.done;
  for (const text of ['b', 'c', 'd', 'e']) {
    log.rotate();
    log.say(text);
  }
  log.append('{"log":"to\n');
  const told: string[] = [];
  const pass = following(t, log.path, {
    cursor: before.cursor(),
    onGaps: (count) => told.push(`${count} gap`),
    onDamaged: (count) => told.push(`${count} damaged`),
  });
  pass.end();
  await pass.done;
  t.match(pass.texts, [/^\[longshore\] lines written between .* were lost/, 'c', 'd', 'e']);
  t.same(told.sort(), ['1 damaged', '1 gap']);
});

t.test('no more logs are searched at a time than the bound', async (t) => {
  const log = engineLog(t);
  const openings = createSemaphore(1);
  const end = await openings.acquire();
  const pass = following(t, log.path, { openings });
  log.say('a');
  pass.end();
  await Promise.resolve();
  t.same(pass.texts, []);
  end();
  await pass.done;
  t.same(pass.texts, ['a']);
});
