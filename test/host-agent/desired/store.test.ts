/** The desired set on a real disk, over restarts of the agent and of its release. */
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import t, { type Test } from 'tap';
import { accept, Assembly, emptyDesired, type DesiredSet } from '../../../host-agent/desired/desired-set.ts';
import { createDesiredStore, type DesiredStore } from '../../../host-agent/desired/store.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import type { DesiredContainer, SyncAnswer } from '../../../schemas/wire/host.ts';
import { basisOf, digestOf } from '../../../schemas/wire/set-digest.ts';
import { quietLog } from '../../actors/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';
import { container, syncAnswer } from '../support/decisions.ts';
import { quietDisk } from '../support/disk.ts';

const one = (name: string, generation = 1): DesiredContainer =>
  container({ id: `0190a000-0000-7000-8000-00000000000${name}` as ContainerId, name, generation });
const [a, b, c] = [one('a'), one('b'), one('c')];

const take = (desired: DesiredSet, changes: Partial<SyncAnswer>): DesiredSet => {
  const answer = new Assembly().add(syncAnswer({ partitions: 2, ...changes }));
  if (answer === undefined) throw new Error('not whole');
  return accept(desired, 2, answer, desired.sets);
};
const digest = (...containers: DesiredContainer[]): string => digestOf(basisOf(0), containers, []);
const whole = (...containers: DesiredContainer[]): Partial<SyncAnswer> => ({
  containers,
  digest: digest(...containers),
});

const storeIn = (stateDir: string, cluster = 'c1'): DesiredStore =>
  createDesiredStore(stateDir, cluster, quietDisk(), quietLog);
const loaded = async (stateDir: string, cluster = 'c1') => {
  const { partitions, sets } = await storeIn(stateDir, cluster).load();
  return { partitions, sets: Object.fromEntries(sets) };
};
const shown = ({ partitions, sets }: DesiredSet) => ({ partitions, sets: Object.fromEntries(sets) });

/** A store with a set of each of two partitions, on disk. */
async function started(t: Test) {
  const stateDir = temporaryFolder(t);
  const folder = join(stateDir, 'desired');
  const store = storeIn(stateDir);
  let desired = await store.load();
  const save = async (changes: Partial<SyncAnswer>): Promise<void> => {
    desired = take(desired, changes);
    store.save(desired);
    await until('it is on disk', async () => isDeepStrictEqual(await loaded(stateDir), shown(desired)));
  };
  await save(whole(a, b));
  await save({ partition: 1, ...whole() });
  t.teardown(() => store.flush());
  return { stateDir, folder, store, save, current: () => desired };
}

t.test('a set is there again after a kill, and its changes are lines', async (t) => {
  const { stateDir, folder, save, current } = await started(t);
  const before = readFileSync(join(folder, '0.json'), 'utf8');
  const later = one('b', 2);
  await save({ revision: 2, since: [1, 1], containers: [later, c], removed: [a.id], digest: digest(later, c) });
  await save({ epoch: 9, revision: 9, same: true });
  await save({ epoch: 9, revision: 10, ...whole(c) });
  t.equal(readFileSync(join(folder, '0.json'), 'utf8'), before);
  t.match((await loaded(stateDir)).sets, { 0: { epoch: 9, revision: 10, containers: [c], basis: basisOf(0) } });
  t.same(await loaded(stateDir), shown(current()));
});

t.test('after a stop, everything is in the files of the partitions', async (t) => {
  const { stateDir, folder, store, save, current } = await started(t);
  await save({ revision: 2, since: [1, 1], containers: [c], digest: digest(a, b, c) });
  await store.flush();
  t.equal(readFileSync(join(folder, 'changes.log'), 'utf8'), '');
  t.match(JSON.parse(readFileSync(join(folder, '0.json'), 'utf8')), { v: 1, cluster: 'c1', revision: 2 });
  rmSync(join(folder, 'changes.log'));
  t.same(await loaded(stateDir), shown(current()));
});

t.test('a kill between the files and the empty log loses nothing', async (t) => {
  const { stateDir, folder, store, save, current } = await started(t);
  await save({ revision: 2, since: [1, 1], containers: [], removed: [a.id], digest: digest(b) });
  await save({ revision: 3, since: [1, 2], containers: [c], digest: digest(b, c) });
  const lines = join(stateDir, 'lines');
  copyFileSync(join(folder, 'changes.log'), lines);
  await store.flush();
  copyFileSync(lines, join(folder, 'changes.log'));
  t.same(await loaded(stateDir), shown(current()));
});

t.test('changes that do not fit their file: the set is unknown', async (t) => {
  const { stateDir, folder, save } = await started(t);
  await save({ revision: 2, since: [1, 1], containers: [], removed: [a.id], digest: digest(b) });
  await save({ partition: 1, revision: 2, since: [1, 1], containers: [c], digest: digest(c) });
  const file = join(folder, '0.json');
  const older = readFileSync(file, 'utf8').replace('"epoch":1,"revision":1', '"epoch":1,"revision":0');
  writeFileSync(file, older);
  t.match((await loaded(stateDir)).sets, { 0: undefined, 1: { containers: [c] } }, 'a change is missing between');
  writeFileSync(file, older.replace('"revision":0', '"revision":7'));
  t.match((await loaded(stateDir)).sets, { 0: { revision: 7, containers: [a, b] } }, 'the file is newer');
  writeFileSync(file, '{');
  t.match((await loaded(stateDir)).sets, { 0: undefined, 1: { containers: [c] } }, 'it cannot be read');
});

t.test('a damaged log: no set may be the last that was given', async (t) => {
  const { stateDir, folder, save } = await started(t);
  await save({ revision: 2, since: [1, 1], containers: [], removed: [a.id], digest: digest(b) });
  await save({ revision: 3, since: [1, 2], containers: [c], digest: digest(b, c) });
  const path = join(folder, 'changes.log');
  writeFileSync(path, readFileSync(path, 'utf8').replace('"revision":2', '"revision":8'));
  t.same(await loaded(stateDir), { partitions: 2, sets: {} });
  t.ok(existsSync(`${path}.unreadable`));
  t.same(await loaded(stateDir), { partitions: 2, sets: {} }, 'at the next start neither');
  const again = storeIn(stateDir);
  const known = take(await again.load(), { partition: 1, revision: 9, ...whole(c) });
  again.save(known);
  await until('it is on disk', async () => isDeepStrictEqual(await loaded(stateDir), shown(known)));
  t.notOk(existsSync(join(folder, '0.json')), 'nor after the owner of another partition has answered');
  await again.flush();
});

t.test('a line that was cut off: the set before it, and the next change writes all', async (t) => {
  const { stateDir, folder, save, current } = await started(t);
  const before = shown(current());
  const path = join(folder, 'changes.log');
  const content = readFileSync(path, 'utf8');
  await save({ revision: 2, since: [1, 1], containers: [], removed: [a.id], digest: digest(b) });
  writeFileSync(path, readFileSync(path, 'utf8').slice(0, content.length + 40));
  t.same(await loaded(stateDir), before);
  const again = storeIn(stateDir);
  const next = take(await again.load(), { revision: 5, ...whole(c) });
  again.save(next);
  await until('it is on disk', async () => isDeepStrictEqual(await loaded(stateDir), shown(next)));
  t.match(JSON.parse(readFileSync(join(folder, '0.json'), 'utf8')), { revision: 5 });
  await again.flush();
});

t.test('sets of another cluster do not count', async (t) => {
  const { stateDir } = await started(t);
  t.same(await loaded(stateDir, 'c2'), { partitions: null, sets: {} });
  const other = storeIn(stateDir, 'c2');
  const desired = take({ ...(await other.load()), ...emptyDesired('c2') }, { cluster: 'c2', ...whole(c) });
  other.save(desired);
  await other.flush();
  t.same(await loaded(stateDir, 'c2'), shown(desired));
});

t.test('a folder that is not there yet', async (t) => {
  const stateDir = join(temporaryFolder(t), 'new');
  mkdirSync(stateDir);
  const store = storeIn(stateDir);
  t.match(shown(await store.load()), { partitions: null, sets: {} });
  await store.flush();
  t.same(readdirSync(stateDir), [], 'nothing is written for nothing');
});
