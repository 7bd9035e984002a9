import t, { type Test } from 'tap';
import type { Contact, Silence } from '../../../host-agent/control-plane/contact.ts';
import { loadFence } from '../../../host-agent/control-plane/fence.ts';
import { createStanding } from '../../../host-agent/control-plane/standing.ts';
import { createFaults } from '../../../host-agent/faults.ts';
import { limits } from '../../../schemas/limits.ts';
import { quietLog } from '../../actors/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';
import { quietDisk } from '../support/disk.ts';

async function start(t: Test, silence: Silence) {
  const state = { silence, isFenced: false, isIsolated: false, isWaiting: false, renewals: 0 };
  const faults = createFaults(quietLog);
  const contact: Contact = {
    heard: () => undefined,
    synced: () => void (state.silence = { ...state.silence, silentMs: 0 }),
    greeted: () => undefined,
    silence: () => state.silence,
    flush: () => Promise.resolve(),
  };
  const standing = createStanding({
    contact,
    fence: await loadFence(temporaryFolder(t), quietDisk(), quietLog),
    containers: {
      setFenced: (isFenced) => void (state.isFenced = isFenced),
      setIsolated: (isIsolated) => void (state.isIsolated = isIsolated),
      setWaiting: (isWaiting) => void (state.isWaiting = isWaiting),
    },
    faults,
    lookMs: 5,
    renewSession: () => void state.renewals++,
    log: quietLog,
  });
  const ending = new AbortController();
  const running = standing.run(ending.signal);
  t.teardown(async () => {
    ending.abort();
    await running;
  });
  return { state, standing, faults };
}

const minute = 60_000;
const inTouch: Silence = { silentMs: 0, ranMs: minute, allowedMs: minute };

t.test('a silence longer than allowed isolates the host; a sync ends that', async (t) => {
  const { state, standing } = await start(t, inTouch);
  t.notOk(state.isIsolated);
  state.silence = { ...inTouch, silentMs: minute + 1 };
  await until('isolation', () => state.isIsolated);
  standing.greeted();
  t.ok(state.isIsolated, 'a session alone does not say what moved meanwhile');
  standing.synced();
  await until('the end of isolation', () => !state.isIsolated);
});

t.test('an agent that cannot prove contact yet waits, then isolates the host', async (t) => {
  const { state } = await start(t, { silentMs: undefined, ranMs: 0, allowedMs: minute });
  t.same([state.isWaiting, state.isIsolated], [true, false]);
  state.silence = { silentMs: undefined, ranMs: limits.firstContactMs, allowedMs: minute };
  await until('isolation', () => state.isIsolated);
  t.notOk(state.isWaiting);
});

t.test('a second agent with this identity isolates the host and is a fault of it', async (t) => {
  const { state, standing, faults } = await start(t, inTouch);
  standing.superseded(true);
  t.ok(state.isIsolated);
  t.same(
    faults.list().map(({ kind }) => kind),
    ['cloned_state'],
  );
  standing.superseded(false);
  t.notOk(state.isIsolated);
  t.same(faults.list(), []);
});

t.test('contact does not end an isolation by a second agent', async (t) => {
  const { state, standing } = await start(t, { ...inTouch, silentMs: minute + 1 });
  await until('isolation', () => state.isIsolated);
  standing.superseded(true);
  standing.synced();
  await new Promise((resolve) => setTimeout(resolve, 20));
  t.ok(state.isIsolated);
});

t.test('a host removed by force asks for a session, and is free after it and a complete sync', async (t) => {
  const { state, standing } = await start(t, inTouch);
  standing.fenced();
  standing.fenced();
  t.same([state.isFenced, state.renewals], [true, 1]);
  standing.settled();
  t.ok(state.isFenced, 'not accepted again yet');
  standing.greeted();
  standing.settled();
  t.notOk(state.isFenced);
});
