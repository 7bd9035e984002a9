import t from 'tap';
import { createFaults } from '../../../../host-agent/faults.ts';
import { loadFence, type Fence } from '../../../../host-agent/control-plane/fence.ts';
import { createStateDisk } from '../../../../host-agent/disk/state-disk.ts';
import { quietLog } from '../../../actors/support.ts';

t.test('a fence stays over a restart, and falls with a new session and a fresh set together', async (t) => {
  const stateDir = t.testdir();
  const start = async (): Promise<Fence> =>
    loadFence(stateDir, createStateDisk(createFaults(quietLog), { minMs: 1, maxMs: 1 }, quietLog), quietLog);
  const first = await start();
  t.equal(first.isUp(), false);
  first.greeted();
  t.equal(first.synced(), false, 'nothing to lift');
  t.equal(first.raise(), true);
  t.equal(first.raise(), false, 'known');
  t.equal(first.synced(), false, 'the session before the fence does not count');
  await first.flush();

  const second = await start();
  t.equal(second.isUp(), true);
  t.equal(second.synced(), false, 'a set without a session');
  second.greeted();
  t.equal(second.isUp(), true, 'a session without a set');
  t.equal(second.synced(), true);
  await second.flush();
  t.equal((await start()).isUp(), false);
});
