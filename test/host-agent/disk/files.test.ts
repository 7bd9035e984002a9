import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createLazyFile, createLazyWriter, readDecoded, writeAtomically } from '../../../host-agent/disk/files.ts';
import { createStateDisk } from '../../../host-agent/disk/state-disk.ts';
import { createFaults } from '../../../host-agent/faults.ts';
import { createLog } from '../../../lib/log.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { bytesLeftBy } from '../../support/garbage.ts';
import { until } from '../../support/until.ts';

const log = createLog('test', 'silent');
const retry = { minMs: 1, maxMs: 20 };

t.test('a file is whole or absent, private, and set aside if unreadable', async (t) => {
  const dir = temporaryFolder(t);
  const path = join(dir, 'a.json');
  await writeAtomically(path, 'one');
  await writeAtomically(path, 'two');
  t.equal(readFileSync(path, 'utf8'), 'two');
  t.equal(statSync(path).mode & 0o777, 0o600);
  const fail = (): never => {
    throw new Error('unreadable');
  };
  t.equal(await readDecoded(path, fail, log), undefined);
  t.same(readdirSync(dir), ['a.json.unreadable']);
  t.equal(await readDecoded(path, fail, log), undefined, 'the agent continues without it');

  let content = 0;
  const lazy = createLazyFile(path, () => String(content), 1000, createStateDisk(createFaults(log), retry, log));
  for (content = 1; content < 100; content++) lazy.touch();
  await lazy.flush();
  t.equal(readFileSync(path, 'utf8'), '100', 'the newest content, however long the pause');
});

t.test('a refused write succeeds later and ends the fault', async (t) => {
  const dir = temporaryFolder(t);
  // A file stands where the folder should be, so nothing can be written.
  const blocked = join(dir, 'state');
  writeFileSync(blocked, '');
  const faults = createFaults(log);
  const path = join(blocked, 'a.json');
  let content = 'one';
  const lazy = createLazyFile(path, () => content, 0, createStateDisk(faults, retry, log));
  lazy.touch();
  await lazy.flush();
  t.match(faults.list(), [{ kind: 'state_unwritable', message: /free space or make the disk writable: / }]);
  content = 'two';
  rmSync(blocked);
  await until('the end of the fault, without another touch', () => faults.list().length === 0);
  t.equal(readFileSync(path, 'utf8'), 'two', 'the newest content');
});

t.test('a flush leaves nothing in memory', async (t) => {
  const writer = createLazyWriter('a', () => Promise.resolve(), 0, createStateDisk(createFaults(log), retry, log));
  const flush = (): Promise<void> => {
    writer.touch();
    return writer.flush();
  };
  // An exec session needs one, and so does each start of a container.
  t.ok((await bytesLeftBy(flush)) < 100);
});
