import t from 'tap';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadFence } from '../../../host-agent/control-plane/fence.ts';
import { quietLog } from '../../actors/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { quietDisk } from '../support/disk.ts';

const isFencedOnDisk = (stateDir: string): boolean =>
  (JSON.parse(readFileSync(join(stateDir, 'fence.json'), 'utf8')) as { fenced: boolean }).fenced;

t.test('a host that was removed by force stays fenced over a restart', async (t) => {
  const stateDir = temporaryFolder(t);
  const fence = await loadFence(stateDir, quietDisk(), quietLog);
  t.notOk(fence.isUp());
  t.ok(fence.raise(), 'news');
  t.notOk(fence.raise(), 'no news');
  await fence.flush();
  t.ok(isFencedOnDisk(stateDir));
  const restarted = await loadFence(stateDir, quietDisk(), quietLog);
  t.ok(restarted.isUp());
  t.notOk(restarted.synced(), 'a complete set without a session');
  restarted.greeted();
  t.ok(restarted.synced());
  await restarted.flush();
  t.notOk((await loadFence(stateDir, quietDisk(), quietLog)).isUp());
});

t.test('only a session and then an answer of every owner lift the fence', async (t) => {
  const stateDir = temporaryFolder(t);
  const fence = await loadFence(stateDir, quietDisk(), quietLog);
  t.notOk(fence.synced(), 'there is no fence to lift');
  fence.raise();
  t.notOk(fence.synced(), 'the control plane has not accepted the host');
  fence.greeted();
  fence.raise();
  t.notOk(fence.synced(), 'the host was removed again after the session');
  fence.greeted();
  t.ok(fence.isUp(), 'a session alone starts nothing: containers may have been placed elsewhere');
  t.ok(fence.synced());
  t.notOk(fence.isUp());
  t.notOk(fence.synced(), 'lifted once');
  await fence.flush();
  t.notOk(isFencedOnDisk(stateDir));
});

t.test('a damaged file counts as no fence and is set aside', async (t) => {
  const stateDir = temporaryFolder(t);
  writeFileSync(join(stateDir, 'fence.json'), '{"v":1');
  t.notOk((await loadFence(stateDir, quietDisk(), quietLog)).isUp());
  t.equal(readFileSync(join(stateDir, 'fence.json.unreadable'), 'utf8'), '{"v":1');
});
