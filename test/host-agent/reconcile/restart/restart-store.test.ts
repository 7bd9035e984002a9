import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  fromStored,
  loadRestartStore,
  toStored,
  type RestartStore,
} from '../../../../host-agent/reconcile/restart/restart-store.ts';
import { noOrphans } from '../../../../host-agent/desired/orphans.ts';
import type { ContainerId } from '../../../../schemas/ids.ts';
import { containerId, quietLog } from '../../../actors/support.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { until } from '../../../support/until.ts';
import { nowMs, restartState } from '../../support/decisions.ts';
import { quietDisk } from '../../support/disk.ts';

t.test('the rest of a wait survives a restart, whatever the wall clock does', (t) => {
  const maxWaitMs = 60_000;
  const waiting = restartState({ failures: 4, attempt: { phase: 'waiting', untilMs: nowMs + 8000 } });
  const stored = toStored(waiting, { wallMs: () => nowMs, steadyMs: () => nowMs, maxWaitMs });
  for (const [name, passedMs, leftMs] of [
    ['at once', 0, 8000],
    ['after three seconds', 3000, 5000],
    ['after it is over', 9000, 0],
    ['after the clock was set back by an hour', -3_600_000, 8000],
    ['after the clock was set forward by an hour', 3_600_000, 0],
  ] as const) {
    const steadyMs = () => 77;
    const restart = fromStored(stored, { wallMs: () => nowMs + passedMs, steadyMs, maxWaitMs });
    t.match(restart, { failures: 4, attempt: { phase: 'waiting', untilMs: 77 + leftMs } }, name);
  }
  t.end();
});

const time = { wallMs: () => nowMs, steadyMs: () => nowMs, maxWaitMs: 60_000 };
const storeIn = async (stateDir: string): Promise<RestartStore> =>
  loadRestartStore(stateDir, time, quietDisk(), quietLog);
/** The states as a process reads them that starts now. */
const seen = async (stateDir: string, ids: readonly ContainerId[]) => {
  const store = await storeIn(stateDir);
  return { failures: ids.map((id) => store.of(id).failures), word: store.orphans().word };
};

t.test('states have the names on disk that earlier releases know', (t) => {
  const stored = toStored(restartState({ want: 'ignored' }), time);
  t.equal(stored.want, 'untouched');
  t.equal(fromStored(stored, time).want, 'ignored');
  t.equal(toStored(restartState({ want: 'prepared' }), time).want, 'stopped');
  t.end();
});

t.test('the version of a refused login survives a restart', (t) => {
  const why = { reason: 'image_auth', message: 'refused', exitCode: null, login: 3 } as const;
  const stored = toStored(restartState({ attempt: { phase: 'failed' }, why }), time);
  t.same(fromStored(stored, time).why, why);
  t.end();
});

t.test('a change is a line, and a start reads file and lines', async (t) => {
  const stateDir = temporaryFolder(t);
  const [one, two, three] = [containerId(), containerId(), containerId()];
  const ids = [one, two, three];
  const store = await storeIn(stateDir);
  store.set(one, restartState({ failures: 1 }));
  store.set(two, restartState({ failures: 2 }));
  await store.flush();
  const file = readFileSync(join(stateDir, 'memory.json'), 'utf8');
  t.same(await seen(stateDir, ids), { failures: [1, 2, 0], word: null });

  store.set(one, restartState({ failures: 4 }));
  store.set(three, restartState({ failures: 3 }));
  store.forget(two);
  store.setOrphans({ ...noOrphans, word: 7 });
  await until('it is on disk', async () => (await seen(stateDir, ids)).word === 7);
  t.same(await seen(stateDir, ids), { failures: [4, 0, 3], word: 7 });
  t.equal(readFileSync(join(stateDir, 'memory.json'), 'utf8'), file);

  const lines = readFileSync(join(stateDir, 'memory.log'), 'utf8');
  store.set(one, restartState({ failures: 5 }));
  await store.flush();
  t.equal(readFileSync(join(stateDir, 'memory.log'), 'utf8'), '', 'after a stop the file has all of it');
  t.same(await seen(stateDir, ids), { failures: [5, 0, 3], word: 7 });
  writeFileSync(join(stateDir, 'memory.log'), lines);
  t.same(await seen(stateDir, ids), { failures: [5, 0, 3], word: 7 }, 'and a log of an earlier file is passed over');
});

t.test('a judgement that changes nothing writes nothing', async (t) => {
  const stateDir = temporaryFolder(t);
  const store = await storeIn(stateDir);
  store.setOrphans({ ...noOrphans, word: 1 });
  await store.flush();
  const before = readFileSync(join(stateDir, 'memory.json'), 'utf8');
  for (let judged = 0; judged < 10; judged++) store.setOrphans({ approved: new Set(), word: 1 });
  await store.flush();
  t.equal(readFileSync(join(stateDir, 'memory.json'), 'utf8'), before);
});
