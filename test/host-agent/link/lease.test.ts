/**
 * Time for which containers run without the control plane, over restarts of the agent, and the
 * moment from which the control plane may assume that they have stopped.
 */
import t, { type Test } from 'tap';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import * as host from '../../../actors/domain/host/decide.ts';
import {
  createLease,
  connectivityOf,
  loadContact,
  loadFence,
  stopAllMs,
  stoppedAfterMs,
  strictest,
  type Contact,
  type Silence,
  type Verdict,
} from '../../../host-agent/link/lease.ts';
import { createFaults } from '../../../host-agent/faults.ts';
import { systemMachineTime } from '../../../host-agent/link/machine-time.ts';
import { createStateDisk } from '../../../host-agent/disk/state-disk.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { limits } from '../../../schemas/limits.ts';
import { quietLog } from '../../actors/support.ts';
import { contextOf, fleetOf, h1, hostRecord } from '../../actors/support/records.ts';
import { quietDisk } from '../support/disk.ts';
import { lastContactMs, machine } from '../support/machine.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';

const minute = 60_000;

for (const [name, silentMs, ranMs, allowedMs, expected] of [
  ['contact in time', minute, 10 * minute, minute, 'in_touch'],
  ['silent for longer', minute + 1, 10 * minute, minute, 'cut_off'],
  ['started too late to prove it', 9 * minute, 0, minute, 'waiting'],
  ['nothing to prove it with', undefined, 0, minute, 'waiting'],
  ['nothing to prove it with, and no contact since', undefined, limits.firstContactMs, minute, 'cut_off'],
  ['never stopped for silence', undefined, 10 * minute, 0, 'in_touch'],
] as const) {
  t.test(`connectivity: ${name} → ${expected}`, (t) => {
    t.equal(connectivityOf({ silentMs, ranMs, allowedMs }), expected);
    t.end();
  });
}

for (const [toldMs, setMs, expected] of [
  [0, 0, 0],
  [60, 90, 60],
  [90, 60, 60],
  [60, 0, 60],
  [0, 60, 60],
] as const) {
  t.test(`${toldMs} announced, ${setMs} set → ${expected}`, (t) => {
    t.equal(strictest(toldMs, setMs), expected);
    t.end();
  });
}

t.test('a fenced host counts as stopped only after its agent stopped everything, over any restarts', (t) => {
  const ms = (max: number) => fc.integer({ min: 0, max });
  fc.assert(
    fc.property(
      fc.record({
        allowedMs: fc.integer({ min: 1, max: 10 * minute }),
        lookMs: fc.integer({ min: 1, max: minute }),
        graceMs: ms(minute),
        containers: ms(1000),
        /** The last start of the agent, and whether it can read the last contact from disk. */
        startedAtMs: ms(10 * minute),
        isKnown: fc.boolean(),
        fencedAtMs: ms(20 * minute),
      }),
      ({ allowedMs, lookMs, graceMs, containers, startedAtMs, isKnown, fencedAtMs }) => {
        const settings = { STOP_ON_DISCONNECT: allowedMs, HEARTBEAT_INTERVAL: lookMs, STOP_GRACE: graceMs };
        const stopsAfterMs = stoppedAfterMs(settings, containers);
        // The last contact was at 0; the last start was before the containers had to stop.
        const lastStartMs = Math.min(startedAtMs, allowedMs);
        let nowMs = lastStartMs;
        const isCutOff = () => {
          const silentMs = isKnown ? nowMs : undefined;
          return connectivityOf({ silentMs, ranMs: nowMs - lastStartMs, allowedMs }) === 'cut_off';
        };
        while (!isCutOff()) nowMs += lookMs;
        const stoppedMs = nowMs + stopAllMs(settings, containers);
        const silence = { silentMs: () => stoppedMs, regionIsSilent: () => false, hostLostMs: 1 };
        const record = hostRecord(h1, { fencedAtMs: Math.min(fencedAtMs, stoppedMs), stopsAfterMs });
        const atTheLastStop = host.observeSilence(record, { ...contextOf(fleetOf(), stoppedMs), ...silence });
        return stopsAfterMs !== null && stoppedMs <= stopsAfterMs && atTheLastStop.deletes.length === 0;
      },
    ),
    { numRuns: 2000 },
  );
  t.equal(stoppedAfterMs({ STOP_ON_DISCONNECT: 0, HEARTBEAT_INTERVAL: 1, STOP_GRACE: 1 }, 1), null);
  t.end();
});

const diskOf = () => createStateDisk(createFaults(quietLog), { minMs: 1, maxMs: 1 }, quietLog);

t.test('the last contact survives a restart within one boot of the machine', async (t) => {
  const stateDir = temporaryFolder(t);
  const time = machine();
  const start = (more = time, setMs = minute) => loadContact(stateDir, setMs, more, diskOf(), quietLog);
  const first = await start();
  t.equal(first.silence().silentMs, undefined, 'nothing is known');
  first.heard();
  t.equal(first.silence().silentMs, undefined, 'a session alone does not say what moved meanwhile');
  first.greeted();
  first.synced();
  time.pass(10_000);
  first.heard();
  await first.flush();

  time.pass(40_000);
  t.equal((await start()).silence().silentMs, 40_000);
  t.equal(
    (await start(machine('boot 2', 9_000_000))).silence().silentMs,
    undefined,
    'the machine was off for an unknown time',
  );
  t.equal((await start(machine('boot 1', 1))).silence().silentMs, undefined, 'the contact is in the future');
  t.equal((await start(time, 0)).silence().allowedMs, minute, 'the control plane relies on the announced value');
  t.equal((await start(time, 2 * minute)).silence().allowedMs, minute);
  t.equal((await start(time, minute / 2)).silence().allowedMs, minute / 2);

  const longer = await start(time, 2 * minute);
  longer.greeted();
  longer.synced();
  t.equal(longer.silence().allowedMs, 2 * minute, 'announced');
  await longer.flush();
  time.pass(2 * minute + 1);
  t.equal(connectivityOf((await start(time, 2 * minute)).silence()), 'waiting');

  const off = await start(time, 0);
  off.greeted();
  await off.flush();
  t.equal((await start(time, 0)).silence().allowedMs, 0);

  writeFileSync(join(stateDir, 'contact.json'), 'damaged');
  t.equal((await start()).silence().silentMs, undefined);
  t.ok(existsSync(join(stateDir, 'contact.json.unreadable')));
});

t.test('the last contact is written while the agent runs', async (t) => {
  const stateDir = temporaryFolder(t);
  const time = machine();
  const contact = await loadContact(stateDir, 80, time, diskOf(), quietLog);
  contact.greeted();
  contact.synced();
  // No flush, because the agent may be killed.
  await until(
    'the contact on disk',
    () => existsSync(join(stateDir, 'contact.json')) && lastContactMs(stateDir) === time.nowMs(),
  );
  time.pass(50);
  contact.heard();
  await until('the newer contact on disk', () => lastContactMs(stateDir) === time.nowMs());
});

t.test('machine time rises and names the boot, where the system does', (t) => {
  const time = systemMachineTime(systemClock);
  const before = time.nowMs();
  t.ok(time.nowMs() >= before);
  if (process.platform === 'linux') t.match(time.boot, /^[0-9a-f-]{36}$/);
  t.end();
});

/* The fence of a host that was removed by force. */

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

/* Permission to run containers. */

async function start(t: Test, silence: Silence) {
  const state = { silence, renewals: 0 };
  const faults = createFaults(quietLog);
  const contact: Contact = {
    heard: () => undefined,
    synced: () => void (state.silence = { ...state.silence, silentMs: 0 }),
    greeted: () => undefined,
    silence: () => state.silence,
    flush: () => Promise.resolve(),
  };
  const fence = await loadFence(temporaryFolder(t), quietDisk(), quietLog);
  const lease = createLease({ contact, fence, faults, lookMs: 5, log: quietLog });
  const verdicts: Verdict[] = [];
  lease.events.on('verdict', (verdict) => void verdicts.push(verdict));
  lease.events.on('fenced', () => void state.renewals++);
  const ending = new AbortController();
  const running = lease.run(ending.signal);
  t.teardown(async () => {
    ending.abort();
    await running;
  });
  return { state, lease, verdicts, faults };
}

const inTouch: Silence = { silentMs: 0, ranMs: minute, allowedMs: minute };

t.test('a silence longer than allowed isolates the host; a sync ends that', async (t) => {
  const { state, lease } = await start(t, inTouch);
  t.equal(lease.verdict(), 'run');
  state.silence = { ...inTouch, silentMs: minute + 1 };
  await until('isolation', () => lease.verdict() === 'stop');
  lease.greeted();
  t.equal(lease.verdict(), 'stop', 'a session alone does not say what moved meanwhile');
  lease.synced();
  await until('the end of isolation', () => lease.verdict() === 'run');
});

t.test('an agent that cannot prove contact yet waits, then isolates the host', async (t) => {
  const { state, lease, verdicts } = await start(t, { silentMs: undefined, ranMs: 0, allowedMs: minute });
  t.equal(lease.verdict(), 'wait');
  state.silence = { silentMs: undefined, ranMs: limits.firstContactMs, allowedMs: minute };
  await until('isolation', () => lease.verdict() === 'stop');
  t.same(verdicts, ['wait', 'stop'], 'each is told once');
});

t.test('a second agent with this identity isolates the host and is a fault of it', async (t) => {
  const { lease, faults } = await start(t, inTouch);
  lease.superseded(true);
  t.equal(lease.verdict(), 'stop');
  t.same(
    faults.list().map(({ kind }) => kind),
    ['cloned_state'],
  );
  lease.superseded(false);
  t.equal(lease.verdict(), 'run');
  t.same(faults.list(), []);
});

t.test('contact does not end an isolation by a second agent', async (t) => {
  const { lease } = await start(t, { ...inTouch, silentMs: minute + 1 });
  await until('isolation', () => lease.verdict() === 'stop');
  lease.superseded(true);
  lease.synced();
  await new Promise((resolve) => setTimeout(resolve, 20));
  t.equal(lease.verdict(), 'stop');
});

t.test('a host removed by force asks for a session, and is free after it and a complete sync', async (t) => {
  const { state, lease } = await start(t, inTouch);
  lease.fenced();
  lease.fenced();
  t.same([lease.verdict(), state.renewals], ['stop', 1]);
  lease.settled();
  t.equal(lease.verdict(), 'stop', 'not accepted again yet');
  lease.greeted();
  lease.settled();
  t.equal(lease.verdict(), 'run');
});
