import { mkdirSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { LogFile } from '../../../../host-agent/logs/files/log-file.ts';
import { isUnreadable } from '../../../../host-agent/logs/files/ring.ts';
import type { Line } from '../../../../host-agent/logs/lines.ts';
import type { Cursor } from '../../../../host-agent/logs/resume.ts';
import { limits } from '../../../../schemas/limits.ts';
import { base } from '../../support/log-lines.ts';
import { engineLog } from './engine-log.ts';
import { logFileLookBytes } from '../../../../host-agent/logs/files/chain.ts';

const nowMs = base / 1000 + 3_600_000;
const fresh: Cursor = { dockerId: 'a', place: null, seq: 0 };

const opened = async (t: Test, path: string, cursor = fresh): Promise<LogFile> => {
  const file = await LogFile.open(path, cursor, nowMs);
  t.teardown(() => file.close());
  return file;
};

async function rest(file: LogFile): Promise<Line[]> {
  const all: Line[] = [];
  for (let lines = await file.read(); lines !== undefined; lines = await file.read()) all.push(...lines);
  return all;
}
const texts = async (file: LogFile): Promise<string[]> => (await rest(file)).map(({ text }) => text);

const after = (line: Line | undefined, change: Partial<Cursor> = {}): Cursor => {
  if (line === undefined) throw new Error('no line');
  const { ts, stream, nth, at } = line;
  return { ...fresh, place: { ts, stream, nth }, at, ...change };
};

t.test('all files are read, the oldest first, and then what is appended', async (t) => {
  const log = engineLog(t);
  for (const text of ['a', 'b', 'c']) {
    log.say(text);
    log.rotate();
  }
  log.say('d');
  const file = await opened(t, log.path);
  // The file of `a` is gone.
  t.same(await texts(file), ['b', 'c', 'd']);
  log.say('e');
  t.same(await texts(file), ['e']);
  t.same(await texts(file), []);
});

t.test('rotations under a reader: every line once', async (t) => {
  const log = engineLog(t);
  const file = await opened(t, log.path);
  log.say('a');
  t.same(await texts(file), ['a']);
  log.say('b');
  log.rotate();
  log.say('c');
  t.same(await texts(file), ['b', 'c'], 'once');
  log.say('d');
  log.rotate();
  log.say('e');
  log.rotate();
  log.say('f');
  t.same(await texts(file), ['d', 'e', 'f'], 'twice');
  log.rotate();
  t.same(await texts(file), [], 'at the end of a file');
  log.say('g');
  t.same(await texts(file), ['g']);
  t.same(file.takeFaults(), { gaps: 0, damaged: 0 });
});

t.test('a record that is written in two parts, with a rotation behind it', async (t) => {
  const log = engineLog(t);
  const file = await opened(t, log.path);
  log.append('{"log":"a\\n","stream":"stdout",');
  t.same(await texts(file), []);
  log.append('"time":"2026-01-02T03:04:05Z"}\n');
  log.rotate();
  log.say('b');
  t.same(await texts(file), ['a', 'b']);
});

t.test('a reader that comes back reads on behind its line', async (t) => {
  const log = engineLog(t);
  for (const text of ['a', 'b', 'c']) log.say(text);
  const lines = await rest(await opened(t, log.path));
  const cursor = after(lines[1]);
  t.same(await texts(await opened(t, log.path, cursor)), ['c']);
  log.rotate();
  log.say('d');
  t.same(await texts(await opened(t, log.path, cursor)), ['c', 'd'], 'in a file that was renamed');
  const moved = after(lines[1], { at: { ...lines[1]!.at!, file: '1:2' } });
  t.same(await texts(await opened(t, log.path, moved)), ['c', 'd'], 'after a restart changed the device');
  t.same(await texts(await opened(t, log.path, after(lines[1], { at: undefined }))), ['c', 'd'], 'without the offset');
});

t.test('another file at the same inode and of the same size is not taken for the one that was read', async (t) => {
  const log = engineLog(t);
  for (const text of ['a', 'b', 'c']) log.say(text);
  const lines = await rest(await opened(t, log.path));
  truncateSync(log.path);
  for (const text of ['d', 'e', 'f']) log.say(text);
  const file = await opened(t, log.path, after(lines[2]));
  const read = await rest(file);
  t.same(
    read.map(({ text }) => text),
    ['d', 'e', 'f'],
  );
  t.equal(read[0]?.lostSince, lines[2]?.ts, 'the tenant reads that lines may be missing');
  t.equal(file.takeFaults().gaps, 1);
});

t.test('a line that was rotated away: what is left is new, and a mark goes before it', async (t) => {
  const log = engineLog(t);
  log.say('a');
  const file = await opened(t, log.path);
  const [a] = await rest(file);
  for (const text of ['b', 'c', 'd', 'e']) {
    log.rotate();
    log.say(text);
  }
  for (const [what, reader] of [
    ['while it was read', file],
    ['while nobody read', await opened(t, log.path, after(a))],
  ] as const) {
    const lines = await rest(reader);
    t.same(
      lines.map(({ text }) => text),
      ['c', 'd', 'e'],
      what,
    );
    t.same(
      lines.map(({ lostSince }) => lostSince),
      [a?.ts, undefined, undefined],
      what,
    );
    t.equal(reader.takeFaults().gaps, 1, what);
  }
});

t.test('of a reader that is behind, a rotation takes no file away while it reads the one before', async (t) => {
  const log = engineLog(t);
  const long = 'x'.repeat(limits.logLineBytes - 100);
  const count = Math.ceil((2 * logFileLookBytes) / long.length);
  const file = await opened(t, log.path);
  for (let number = 0; number < count; number++) log.say(`${number} ${long}`);
  log.rotate();
  log.say('second');
  log.rotate();
  log.say('third');
  const lines: Line[] = [];
  while (lines.length < count - 10) lines.push(...((await file.read()) ?? []));
  // Now neither of the first two has a name.
  for (const text of ['fourth', 'fifth']) {
    log.rotate();
    log.say(text);
  }
  lines.push(...(await rest(file)));
  t.same(
    lines.slice(count).map(({ text }) => text),
    ['second', 'third', 'fourth', 'fifth'],
  );
  t.same(file.takeFaults(), { gaps: 0, damaged: 0 });
});

t.test('a file that somebody emptied is read again from its beginning', async (t) => {
  const log = engineLog(t);
  log.say('a line that is longer than the next');
  const file = await opened(t, log.path);
  const [first] = await rest(file);
  truncateSync(log.path);
  log.say('b');
  const lines = await rest(file);
  t.same(
    lines.map(({ text, lostSince }) => [text, lostSince]),
    [['b', first?.ts]],
  );
});

t.test('a place that is known by its time only is found without reading the whole log', async (t) => {
  const log = engineLog(t);
  const long = 'x'.repeat(4000);
  const count = 1500;
  for (let number = 0; number < count; number++) log.say(`${number} ${long}`);
  const lines = await rest(await opened(t, log.path));
  // Behind the last two seconds, which may be out of order, the log is read in steps of 256 KiB.
  const file = await opened(t, log.path, after(lines[count - 5], { at: undefined }));
  t.same(
    (await texts(file)).map((text) => text.split(' ')[0]),
    ['1496', '1497', '1498', '1499'],
  );
});

t.test('if the files cannot be read, the engine is to be asked', async (t) => {
  const log = engineLog(t);
  log.say('a');
  const unreadable = async (path: string): Promise<boolean> =>
    LogFile.open(path, fresh, nowMs).then(() => false, isUnreadable);
  t.ok(await unreadable(`${log.path}.elsewhere`));
  const file = await opened(t, log.path);
  writeFileSync(`${log.path}.1.gz`, '');
  t.ok(await unreadable(log.path), 'the engine compresses rotated files');
  t.same(await texts(file), ['a']);
  rmSync(log.path);
  t.ok(await file.read().then(() => false, isUnreadable), 'the container was removed');
});

t.test('a file that cannot be read is closed', async (t) => {
  const log = engineLog(t);
  log.say('a');
  const [line] = await rest(await opened(t, log.path));
  rmSync(log.path);
  // It opens, and each read of it fails.
  mkdirSync(log.path);
  const openFiles = (): number => readdirSync('/dev/fd').length;
  const before = openFiles();
  for (let attempt = 0; attempt < 5; attempt++) {
    await t.rejects(LogFile.open(log.path, after(line), nowMs), { code: 'EISDIR' });
  }
  t.equal(openFiles(), before);
});
