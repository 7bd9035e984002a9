/** A file and the log that continues it, on a real disk: what a start reads of them. */
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import Type from 'typebox';
import { fileMarks, lineMarks, readContinuedFile } from '../../../host-agent/disk/continued-file.ts';
import { decoder } from '../../../lib/decode.ts';
import { quietLog } from '../../actors/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';
import { quietDisk } from '../support/disk.ts';

const says = Type.Array(Type.String());
const decodeFile = decoder(Type.Object({ ...fileMarks, says }));
const decodeLine = decoder(Type.Object({ ...lineMarks, says }));

const reading = (stateDir: string) =>
  readContinuedFile({
    stateDir,
    name: 'list',
    decodeFile,
    decodeLine,
    intervalMs: 0,
    disk: quietDisk(),
    log: quietLog,
  });
/** The file as a process reads it that starts now. */
const read = async (stateDir: string): Promise<string[]> => {
  const { file, lines } = await reading(stateDir);
  return [file, ...lines].flatMap((part) => part?.says ?? []);
};

/** A list that only grows. */
async function kept(t: Test, stateDir: string) {
  const all = await read(stateDir);
  let news: string[] = [];
  const file = (await reading(stateDir)).follow({
    whole: () => ({ says: all }),
    changes: () => {
      const change = { says: news };
      news = [];
      return change.says.length === 0 ? undefined : change;
    },
  });
  t.teardown(() => file.flush());
  const add = async (say: string): Promise<void> => {
    all.push(say);
    news.push(say);
    file.touch();
    await until(`${say} on disk`, async () => (await read(stateDir)).join() === all.join());
  };
  return { add, stop: () => file.flush() };
}

const pathsOf = (stateDir: string) => ({ file: join(stateDir, 'list.json'), log: join(stateDir, 'list.log') });

t.test('a first write is the whole file, with the number of its log; later ones are lines', async (t) => {
  const stateDir = temporaryFolder(t);
  const { file, log } = pathsOf(stateDir);
  t.equal((await reading(stateDir)).file, undefined);
  const { add, stop } = await kept(t, stateDir);
  await add('a');
  t.same(JSON.parse(readFileSync(file, 'utf8')), { v: 1, log: 1, says: ['a'] });
  await add('b');
  t.match(readFileSync(log, 'utf8'), / \{"v":1,"log":1,"says":\["b"\]\}\n$/);
  await stop();
  t.same(JSON.parse(readFileSync(file, 'utf8')), { v: 1, log: 2, says: ['a', 'b'] });
});

t.test('lines that the file contains already do not count', async (t) => {
  const stateDir = temporaryFolder(t);
  const { log } = pathsOf(stateDir);
  const { add, stop } = await kept(t, stateDir);
  await add('a');
  await add('b');
  const lines = readFileSync(log);
  await stop();
  // A crash between the write of the file and the emptying of the log.
  writeFileSync(log, lines);
  t.same(await read(stateDir), ['a', 'b']);
  const next = await kept(t, stateDir);
  await next.add('c');
  t.same(await read(stateDir), ['a', 'b', 'c'], 'those after them count');
});

t.test('after a line that was cut off, the next write is the whole', async (t) => {
  const stateDir = temporaryFolder(t);
  const { file, log } = pathsOf(stateDir);
  const { add } = await kept(t, stateDir);
  await add('a');
  await add('b');
  await add('c');
  truncateSync(log, readFileSync(log).length - 1);
  t.same(await read(stateDir), ['a', 'b']);
  const { add: addNext } = await kept(t, stateDir);
  await addNext('d');
  t.match(JSON.parse(readFileSync(file, 'utf8')), { log: 2, says: ['a', 'b', 'd'] });
});

t.test('lines without a file do not count', async (t) => {
  const stateDir = temporaryFolder(t);
  const { add } = await kept(t, stateDir);
  await add('a');
  await add('b');
  writeFileSync(pathsOf(stateDir).file, 'damaged');
  t.same(await read(stateDir), []);
});
