/** A log of changes on a real disk: what is in it, when the whole is written, how it ends. */
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import Type from 'typebox';
import { createChangeLog, readChangeLog, type Lines } from '../../../host-agent/disk/change-log.ts';
import { createStateDisk } from '../../../host-agent/disk/state-disk.ts';
import { createFaults } from '../../../host-agent/faults.ts';
import { decoder } from '../../../lib/decode.ts';
import { createLog } from '../../../lib/log.ts';
import { limits } from '../../../schemas/limits.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';

const log = createLog('test', 'silent');
const decode = decoder(Type.Object({ says: Type.Array(Type.String()) }));
type Line = ReturnType<typeof decode>;

/** A list that is kept in a file, and in a log beside it. */
function kept(t: Test, folder = temporaryFolder(t)) {
  const path = join(folder, 'changes.log');
  const faults = createFaults(log);
  const all: string[] = [];
  let news: string[] = [];
  let wholes = 0;
  const file = createChangeLog({
    path,
    changes: () => {
      const says = news;
      news = [];
      return says.length === 0 ? undefined : { says };
    },
    writeWhole: async () => {
      wholes++;
      writeFileSync(join(folder, 'whole'), all.join());
      return Promise.resolve();
    },
    bytes: 0,
    isWholeDue: false,
    intervalMs: 0,
    disk: createStateDisk(faults, { minMs: 1, maxMs: 5 }, log),
  });
  const add = (...says: string[]): void => {
    all.push(...says);
    news.push(...says);
    file.touch();
  };
  const read = async (): Promise<Lines<Line>> => readChangeLog(path, decode, log);
  const said = async (): Promise<string[]> => (await read()).lines.flatMap(({ says }) => says);
  t.teardown(() => file.flush());
  return { folder, path, file, faults, add, read, said, wholes: () => wholes };
}

t.test('a change is a line; a private file', async (t) => {
  const { path, add, said, wholes } = kept(t);
  add('a', 'b');
  await until('the first line', async () => (await said()).join() === 'a,b');
  add('c');
  await until('the second', async () => (await said()).join() === 'a,b,c');
  t.equal(wholes(), 0);
  t.equal(statSync(path).mode & 0o777, 0o600);
});

t.test('the whole is written when the log has grown to its bound, and when the agent stops', async (t) => {
  const { folder, file, add, said, wholes } = kept(t);
  add('x'.repeat(limits.stateLogBytes));
  await until('a long log', async () => (await said()).length === 1);
  add('y');
  await until('the whole', () => wholes() === 1);
  await until('an empty log', async () => (await said()).length === 0);
  add('z');
  await file.flush();
  t.same([wholes(), await said()], [2, []]);
  t.match(readFileSync(join(folder, 'whole'), 'utf8'), /,y,z$/);
  await file.flush();
  t.equal(wholes(), 2, 'nothing has changed since');
});

t.test('a change that was cut off is dropped, and only that', async (t) => {
  const { path, add, read, said, file } = kept(t);
  add('a');
  await until('the first line', async () => (await said()).length === 1);
  add('b');
  await until('the second', async () => (await said()).length === 2);
  const { size } = statSync(path);
  const content = readFileSync(path);
  const bytesOfFirst = content.indexOf('\n') + 1;
  for (let cut = 1; cut < size - bytesOfFirst; cut++) {
    truncateSync(path, size - cut);
    t.match(await read(), { end: 'torn', bytes: bytesOfFirst, lines: [{ says: ['a'] }] });
  }
  // The blocks of a write may reach the disk in any order.
  for (let at = bytesOfFirst; at < size - 1; at++) {
    const blank = Buffer.from(content);
    blank[at] = 0;
    writeFileSync(path, blank);
    t.match(await read(), { end: 'torn', bytes: bytesOfFirst, lines: [{ says: ['a'] }] });
  }
  writeFileSync(path, content);
  await file.flush();
});

t.test('a damaged line before others: the log is copied', async (t) => {
  const { folder, path, add, read, said } = kept(t);
  for (const [index, say] of ['a', 'b', 'c'].entries()) {
    add(say);
    await until(`line ${index}`, async () => (await said()).length === index + 1);
  }
  const content = readFileSync(path, 'utf8');
  writeFileSync(path, content.replace('"b"', '"B"'));
  t.match(await read(), { end: 'damaged', lines: [{ says: ['a'] }] });
  t.same(readdirSync(folder).sort(), ['changes.log', 'changes.log.unreadable']);
  t.match(await read(), { end: 'damaged' }, 'until the whole is written');
});

t.test('after a write that failed the whole is written, as soon as the disk takes it', async (t) => {
  const folder = join(temporaryFolder(t), 'state');
  writeFileSync(folder, 'a file where the folder should be');
  const { add, faults, said, wholes } = kept(t, folder);
  add('a');
  await until('the fault', () => faults.list().length === 1);
  t.match(faults.list(), [{ kind: 'state_unwritable' }]);
  add('b');
  rmSync(folder);
  mkdirSync(folder);
  await until('the end of the fault', () => faults.list().length === 0);
  t.equal(readFileSync(join(folder, 'whole'), 'utf8'), 'a,b');
  t.ok(wholes() >= 1);
  add('c');
  await until('lines again', async () => (await said()).join() === 'c');
});

t.test('a line that no release wrote is damage', async (t) => {
  const { path, read } = kept(t);
  appendFileSync(path, '00000000 {"says":["a"]}\n');
  t.match(await read(), { end: 'torn', lines: [] });
});
