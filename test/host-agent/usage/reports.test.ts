/** Usage that an agent keeps on its disk, and sends until its owners have it. */
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createUsageReports } from '../../../host-agent/usage/reports.ts';
import type { UsageStore } from '../../../host-agent/usage/store.ts';
import type { ServedPeer } from '../../../host-agent/network/tenant-network.ts';
import { countPeers } from '../../../host-agent/usage/peers.ts';
import type { PeerCounted } from '../../../host-agent/usage/ledger.ts';
import type { ContainerId, HostKey, PeerId, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { hourMs, isInTime } from '../../../schemas/records/usage.ts';
import type { UsageAnswer, UsageReport } from '../../../schemas/wire/host.ts';
import { quietLog } from '../../actors/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { protocolFields } from '../../../schemas/wire/version.ts';
import { storeIn } from './support.ts';

const noon = Date.parse('2026-11-24T12:00:00Z');
const noonHour = noon / hourMs;
const at = (ms: number): string => new Date(noon + ms).toISOString();
const idOf = (number: number): ContainerId =>
  `0190a000-0000-7000-8000-${String(number).padStart(12, '0')}` as ContainerId;

/** A run of a container, from its start to its end. */
const ran = ({ ledger }: UsageStore, number: number, fromMs: number, toMs: number, tenant = 'acme'): void => {
  const dockerId = `d${number}-${fromMs}`;
  const run = { dockerId, tenant: tenant as TenantId, id: idOf(number), startedAt: at(fromMs), finishedAt: at(toMs) };
  ledger.see(run, { nowMs: noon + toMs, steadyMs: toMs });
};

async function agent(t: Test) {
  const stateDir = temporaryFolder(t);
  const sent: UsageReport[] = [];
  const counts = { refused: 0, dropped: 0 };
  const clocks = { nowMs: noon, steadyMs: 0 };
  let answer: (report: UsageReport) => Partial<UsageAnswer> | 'silent' = () => ({ ok: true });
  const load = async () => {
    const store = await storeIn(stateDir, clocks, (hours) => (counts.dropped += hours));
    t.teardown(() => store.flush());
    const reports = createUsageReports({
      store,
      partitions: () => 4,
      sender: { host: 'h1' as HostKey, user: 'U' },
      request: async (_subject, payload) => {
        const report = JSON.parse(payload) as UsageReport;
        const given = answer(report);
        if (given === 'silent') throw new Error('no answer');
        sent.push(report);
        return Promise.resolve(Buffer.from(JSON.stringify({ ...protocolFields, memory: 'm', ...given })));
      },
      everyMs: 1000,
      peersEveryMs: 1000,
      onReport: () => {},
      onRefused: (items) => (counts.refused += items),
      log: quietLog,
    });
    return { store, reports };
  };
  return {
    ...(await load()),
    load,
    clocks,
    sent,
    counts,
    stateDir,
    answerWith: (next: typeof answer) => void (answer = next),
    /** The items that were sent since the last call. */
    items: () =>
      sent.splice(0).flatMap(({ items }) => items.map(({ id, hour, used }) => [id, hour - noonHour, used[0]])),
    hoursOnDisk: () => readdirSync(join(stateDir, 'usage')).sort(),
  };
}

t.test('sums are sent once, and again when they have grown', async (t) => {
  const { store, reports, items } = await agent(t);
  ran(store, 1, 0, 1_000);
  ran(store, 2, 0, 500, 'other');
  t.equal(await reports.report(), true);
  t.same(items().sort(), [
    [idOf(1), 0, 1_000],
    [idOf(2), 0, 500],
  ]);
  t.equal(await reports.report(), true);
  t.same(items(), []);
  ran(store, 1, 2_000, 2_250);
  await reports.report();
  t.same(items(), [[idOf(1), 0, 1_250]], 'the whole sum of the hour');
});

t.test('sums are on the disk before they are sent', async (t) => {
  const { store, reports, load, answerWith } = await agent(t);
  ran(store, 1, 0, 1_000);
  let atSend: unknown;
  const later: Promise<unknown>[] = [];
  answerWith(() => {
    later.push(load().then((other) => (atSend = other.store.ledger.state().hours)));
    return { ok: true };
  });
  await reports.report();
  await Promise.all(later);
  t.same(atSend, store.ledger.state().hours);
});

t.test('a killed agent goes on from its disk, under the same source', async (t) => {
  const { store, load, sent } = await agent(t);
  ran(store, 1, 0, 1_000);
  store.ledger.see(
    { dockerId: 'going', tenant: 'acme' as TenantId, id: idOf(2), startedAt: at(0), finishedAt: undefined },
    { nowMs: noon + 10, steadyMs: 10 },
  );
  store.ledger.sample('going', at(0), { nowMs: noon + 10_000, steadyMs: 1 }, { cpuMs: 70, memBytes: 5 });
  await store.flush();
  const again = await load();
  t.same(again.store.ledger.state(), store.ledger.state());
  t.equal(again.store.source(), store.source());
  await again.reports.report();
  t.match(sent[0], { source: store.source() });
});

t.test('a closed hour stays on the disk until all of it is taken', async (t) => {
  const { store, reports, load, answerWith, items, hoursOnDisk, counts, clocks } = await agent(t);
  ran(store, 1, 0, 1_000);
  ran(store, 2, 0, 500, 'other');
  clocks.nowMs = noon + 2 * hourMs;
  await store.close();
  await store.flush();
  answerWith(() => 'silent');
  t.equal(await reports.report(), false);
  const again = await load();
  t.match(again.store.kept(), [{ hour: noonHour }]);
  answerWith(({ items: [item] }) => (item?.tenant === 'other' ? { ok: true, later: [0] } : { ok: true }));
  t.equal(await again.reports.report(), false, 'a part of it can’t be taken yet');
  t.same(hoursOnDisk(), [`${noonHour}.json`]);
  answerWith(({ items: [item] }) => (item?.tenant === 'other' ? { ok: true, refused: [0] } : { ok: true }));
  items();
  t.equal(await again.reports.report(), true);
  t.same(items().sort(), [
    [idOf(1), 0, 1_000],
    [idOf(2), 0, 500],
  ]);
  t.same(hoursOnDisk(), []);
  t.equal(counts.refused, 1, 'what is refused is not sent again');
});

t.test('one partition that does not answer holds up no other', async (t) => {
  const { store, reports, answerWith, items } = await agent(t);
  ran(store, 1, 0, 1_000, 'acme');
  ran(store, 2, 0, 2_000, 'other');
  answerWith(({ items: [item] }) => (item?.tenant === 'acme' ? 'silent' : { ok: true }));
  t.equal(await reports.report(), false);
  t.same(items(), [[idOf(2), 0, 2_000]]);
  answerWith(() => ({ ok: true }));
  t.equal(await reports.report(), true);
  t.same(items(), [[idOf(1), 0, 1_000]]);
});

t.test('an agent that is cut off for very long drops the oldest hours', async (t) => {
  const { store, counts, clocks } = await agent(t);
  for (let hour = 0; hour < limits.usageHoursKept + 2; hour++) {
    ran(store, 1, hour * hourMs, hour * hourMs + 1);
    clocks.nowMs = noon + (hour + 2) * hourMs;
    await store.close();
  }
  t.equal(store.kept().length, limits.usageHoursKept);
  t.match(store.kept()[0], { hour: noonHour + 2 });
  t.equal(counts.dropped, 2);
});

t.test('a closed hour that the disk refuses waits in memory until it has a file', async (t) => {
  const { store, reports, counts, clocks, items, answerWith, stateDir, hoursOnDisk, load } = await agent(t);
  // A file in the place of the folder: nothing can be written there.
  const fill = () => writeFileSync(join(stateDir, 'usage'), '');
  const free = () => rmSync(join(stateDir, 'usage'));
  fill();
  ran(store, 1, 0, 1_000);
  clocks.nowMs = noon + 2 * hourMs;
  await store.close();
  t.same(store.kept(), [{ hour: noonHour, name: `${noonHour}.json` }]);
  answerWith(() => 'silent');
  t.equal(await reports.report(), false);
  ran(store, 1, 2 * hourMs, 2 * hourMs + 2_000);
  clocks.nowMs = noon + 1000;
  await store.close();
  t.equal(store.kept().length, 2, 'one that was begun before the clock was set back');
  await store.flush();
  free();
  const { store: next, reports: later } = await load();
  t.same(next.kept(), store.kept(), 'an agent that is killed has them in the file of its ledger');
  t.not(next.source(), '');
  await next.close();
  t.same(
    hoursOnDisk(),
    next
      .kept()
      .map(({ name }) => name)
      .sort(),
  );
  answerWith(() => ({ ok: true }));
  t.equal(await later.report(), true);
  t.same(items(), [
    [idOf(1), 0, 1_000],
    [idOf(1), 2, 2_000],
  ]);
  t.same([hoursOnDisk(), counts.dropped], [[], 0]);
  await next.flush();
  t.same((await load()).store.kept(), [], 'and none again later');
});

t.test('closed hours in memory go to their owners, and are bounded', async (t) => {
  const { store, reports, counts, clocks, items, stateDir } = await agent(t);
  writeFileSync(join(stateDir, 'usage'), '');
  ran(store, 1, 0, 1_000);
  clocks.nowMs = noon + 2 * hourMs;
  await store.close();
  t.equal(await reports.report(), true);
  t.same([items(), store.kept()], [[[idOf(1), 0, 1_000]], []]);
  for (let hour = 2; hour < limits.usageHoursUnwritten + 4; hour++) {
    ran(store, 1, hour * hourMs, hour * hourMs + 1);
    clocks.nowMs = noon + (hour + 2) * hourMs;
    await store.close();
  }
  t.same([store.kept().length, counts.dropped], [limits.usageHoursUnwritten, 2]);
  t.match(store.kept()[0], { hour: noonHour + 4 });
});

t.test('a new ledger is on the disk at once: an agent that is killed goes on from its begin', async (t) => {
  const { store, load, clocks } = await agent(t);
  clocks.nowMs += 20_000;
  clocks.steadyMs += 20_000;
  const { store: next } = await load();
  t.equal(next.source(), store.source());
  t.equal(next.ledger.sinceMs, noon);
  ran(next, 1, 5_000, 19_000);
  t.match([...next.ledger.state().hours.values()][0]?.get(idOf(1))?.used, { runMs: 14_000 });
});

/** A run by a clock that is ahead by so much, which is set right then. */
async function afterClockAhead(t: Test, aheadMs: number) {
  const all = await agent(t);
  const { store, clocks } = all;
  ran(store, 1, 0, 1_000);
  const pass = (ms: number, ahead: number): void => {
    clocks.steadyMs += ms;
    clocks.nowMs = noon + clocks.steadyMs + ahead;
  };
  pass(10_000, aheadMs);
  const startedAt = new Date(clocks.nowMs).toISOString();
  store.ledger.see(
    { dockerId: 'd', tenant: 'acme' as TenantId, id: idOf(2), startedAt, finishedAt: undefined },
    store.moment(),
  );
  pass(4_000, aheadMs);
  store.ledger.sample('d', startedAt, store.moment(), { cpuMs: 1, memBytes: 0 });
  await store.close();
  pass(3_000, 0);
  store.ledger.sample('d', startedAt, store.moment(), { cpuMs: 2, memBytes: 0 });
  await store.close();
  pass(2_000, 0);
  store.ledger.sample('d', startedAt, store.moment(), { cpuMs: 3, memBytes: 0 });
  return all;
}

/** An owner: takes what is in time, and sums it up by container and hour. */
function ownerOf(nowMs: () => number) {
  const taken = new Map<string, number>();
  return {
    answer: ({ source, items }: UsageReport): Partial<UsageAnswer> => {
      const outOfTime = items.flatMap(({ hour }, place) => (isInTime(hour, nowMs()) ? [] : [place]));
      for (const [place, { id, hour, used }] of items.entries()) {
        const key = [id.at(-1), hour - noonHour, source].join(' ');
        if (!outOfTime.includes(place)) taken.set(key, Math.max(taken.get(key) ?? 0, used[0]));
      }
      return { ok: true, ...(outOfTime.length === 0 ? {} : { later: outOfTime, outOfTime }) };
    },
    sums: () => {
      const sums: Record<string, number> = {};
      for (const [key, runMs] of taken) {
        const [id, hour] = key.split(' ');
        sums[`${id} ${hour}`] = (sums[`${id} ${hour}`] ?? 0) + runMs;
      }
      return sums;
    },
  };
}

t.test('use counted by a clock that was ahead is billed when it is set right, once', async (t) => {
  for (const aheadMs of [48 * hourMs, 365 * 24 * hourMs, 3 * hourMs]) {
    const { reports, answerWith, clocks, load } = await afterClockAhead(t, aheadMs);
    const owner = ownerOf(() => clocks.nowMs);
    answerWith(owner.answer);
    t.equal(await reports.report(), false, 'the hour of the wrong clock is not taken');
    t.equal(await reports.report(), true, 'it has the date of now');
    t.same(owner.sums(), { '1 0': 1_000, '2 0': 9_000 });
    const next = await load();
    t.equal(await next.reports.report(), true);
    t.same(owner.sums(), { '1 0': 1_000, '2 0': 9_000 }, 'a restart counts nothing again');
  }
});

t.test('an hour of which an owner with a wrong clock has a part keeps its date', async (t) => {
  const { reports, answerWith, store, clocks } = await afterClockAhead(t, 48 * hourMs);
  let isFirst = true;
  answerWith(({ items }) => {
    const places = items.flatMap(({ hour }, place) => (isInTime(hour, clocks.nowMs) ? [] : [place]));
    const some = isFirst ? [] : places;
    isFirst = false;
    return { ok: true, later: places, outOfTime: some.slice(1) };
  });
  await reports.report();
  await reports.report();
  t.ok(store.kept().some(({ hour }) => hour === noonHour + 48));
});

t.test('sums that an owner whose clock is behind can’t take are kept, and keep their hour', async (t) => {
  const { store, reports, answerWith, clocks, hoursOnDisk, counts } = await agent(t);
  ran(store, 1, 0, 1_000);
  clocks.nowMs = noon + 2 * hourMs;
  await store.close();
  ran(store, 1, 2 * hourMs, 2 * hourMs + 500);
  const owner = ownerOf(() => clocks.nowMs - 4 * hourMs);
  answerWith(owner.answer);
  t.equal(await reports.report(), false);
  t.equal(await reports.report(), false);
  t.same(hoursOnDisk(), [`${noonHour}.json`]);
  t.equal(counts.refused, 0);
  const right = ownerOf(() => clocks.nowMs);
  answerWith(right.answer);
  t.equal(await reports.report(), true);
  t.same(right.sums(), { '1 0': 1_000, '1 2': 500 });
});

t.test('an open hour that can’t be taken holds up no closed one', async (t) => {
  const { store, reports, answerWith, clocks, hoursOnDisk } = await agent(t);
  ran(store, 1, 0, 1_000);
  clocks.nowMs = noon + 2 * hourMs;
  await store.close();
  ran(store, 2, 2 * hourMs, 2 * hourMs + 500);
  answerWith(({ items: [item] }) => (item?.id === idOf(2) ? { ok: true, later: [0] } : { ok: true }));
  t.equal(await reports.report(), false);
  t.same(hoursOnDisk(), []);
});

t.test('an owner hears of each peer once, and again when it has changed; a new owner hears of all', async (t) => {
  const { store, reports, sent, answerWith } = await agent(t);
  const peer = (at: number, rxBytes: number): PeerCounted => ({
    ...{ tenant: 'acme' as TenantId, id: idOf(at) as string as PeerId, link: 'boot 5' },
    ...{ rxBytes, txBytes: 0, handshakeAtMs: 5000, endpoint: '192.0.2.1:9' },
  });
  const look = (...rx: readonly number[]): void =>
    store.ledger.countPeers(new Map(rx.map((bytes, at) => [`key-${at}`, peer(at, bytes)])), store.moment());
  const heard = () =>
    sent.splice(0).map(({ items, seen = [] }) => [items.length, seen.map(({ id, rx_bytes }) => [id, rx_bytes])]);
  let memory = 'first';
  answerWith(() => ({ ok: true, memory }));
  await reports.reportPeers();
  t.same(heard(), [], 'it serves none');
  look(1, 2);
  await reports.reportPeers();
  const both = [
    [idOf(0), 1],
    [idOf(1), 2],
  ];
  t.same(heard(), [[0, both]]);
  look(1, 3);
  await reports.reportPeers();
  t.same(heard(), [[0, [[idOf(1), 3]]]]);
  await reports.reportPeers();
  t.same(heard(), [[0, []]], 'to hear whether the owner is another one');
  memory = 'second';
  await reports.reportPeers();
  t.same(heard(), [
    [0, []],
    [
      0,
      [
        [idOf(0), 1],
        [idOf(1), 3],
      ],
    ],
  ]);
  answerWith(() => 'silent');
  look(5, 3);
  await reports.reportPeers();
  answerWith(() => ({ ok: true, memory }));
  await reports.reportPeers();
  t.same(heard(), [[0, [[idOf(0), 5]]]], 'what was not answered comes again');
});

t.test('a peer that the agent does not know yet, as after its start, counts on', async (t) => {
  const { store, load } = await agent(t);
  const of = { tenant: 'acme' as TenantId, id: idOf(1) as string as PeerId };
  const served = (rx_bytes: number, isKnown = true): ServedPeer => ({
    ...{ key: 'key', link: 'boot 5', handshake: 0, rx_bytes, tx_bytes: 0, endpoint: null },
    of: isKnown ? of : undefined,
  });
  countPeers(store, []);
  countPeers(store, [served(1, false)]);
  t.same([...(store.ledger.state().peers?.keys() ?? [])], [], 'one of which nothing was known');
  countPeers(store, [served(100)]);
  await store.flush();
  const { store: next } = await load();
  countPeers(next, [served(100, false)]);
  countPeers(next, [served(110)]);
  t.same([...next.ledger.state().hours.values()][0]?.get(of.id)?.used, { rxBytes: 110, txBytes: 0 });
});
