/** What an agent keeps of usage on its disk, and sends until its owners have it. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createStateDisk } from '../../../host-agent/disk/state-disk.ts';
import { createFaults } from '../../../host-agent/faults.ts';
import { createUsageReports } from '../../../host-agent/usage/reports.ts';
import { loadUsageStore, type UsageStore } from '../../../host-agent/usage/store.ts';
import type { ContainerId, HostKey, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { hourMs } from '../../../schemas/records/usage.ts';
import type { UsageAnswer, UsageReport } from '../../../schemas/wire/host.ts';
import { quietLog } from '../../actors/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { spoken } from '../../../schemas/wire/version.ts';

const noon = Date.parse('2026-11-24T12:00:00Z');
const noonHour = noon / hourMs;
const at = (ms: number): string => new Date(noon + ms).toISOString();
const idOf = (number: number): ContainerId =>
  `0190a000-0000-7000-8000-${String(number).padStart(12, '0')}` as ContainerId;

async function storeIn(stateDir: string, onDropped: (hours: number) => void = () => {}): Promise<UsageStore> {
  const disk = createStateDisk(createFaults(quietLog), { minMs: 1, maxMs: 10 }, quietLog);
  let sources = 0;
  const newSource = () => `${++sources}`.padStart(32, '0');
  return loadUsageStore({ stateDir, nowMs: () => noon, newSource, onDropped, disk, log: quietLog });
}

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
  let answer: (report: UsageReport) => Partial<UsageAnswer> | 'silent' = () => ({ ok: true });
  const load = async () => {
    const store = await storeIn(stateDir, (hours) => (counts.dropped += hours));
    const reports = createUsageReports({
      store,
      partitions: () => 4,
      sender: { host: 'h1' as HostKey, user: 'U' },
      request: async (_subject, payload) => {
        const report = JSON.parse(payload) as UsageReport;
        const given = answer(report);
        if (given === 'silent') throw new Error('no answer');
        sent.push(report);
        return Promise.resolve(Buffer.from(JSON.stringify({ ...spoken, ...given })));
      },
      everyMs: 1000,
      onReport: () => {},
      onRefused: (items) => (counts.refused += items),
      log: quietLog,
    });
    return { store, reports };
  };
  return {
    ...(await load()),
    load,
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

const close = async ({ store }: { store: UsageStore }, nowMs: number): Promise<void> => {
  for (const [hour, entries] of store.ledger.close(noon + nowMs)) {
    await store.keep(hour, entries);
    store.ledger.forgetHour(hour);
  }
};

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

t.test('what was sent is on the disk before', async (t) => {
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
  t.equal(again.store.source, store.source);
  await again.reports.report();
  t.match(sent[0], { source: store.source });
});

t.test('a closed hour stays on the disk until all of it is taken', async (t) => {
  const { store, reports, load, answerWith, items, hoursOnDisk, counts } = await agent(t);
  ran(store, 1, 0, 1_000);
  ran(store, 2, 0, 500, 'other');
  await close({ store }, 2 * hourMs);
  await store.flush();
  answerWith(() => 'silent');
  t.equal(await reports.report(), false);
  const again = await load();
  t.same(again.store.kept(), [noonHour]);
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
  const { store, counts } = await agent(t);
  for (let hour = 0; hour < limits.usageHoursKept + 2; hour++) await store.keep(hour, new Map());
  t.equal(store.kept().length, limits.usageHoursKept);
  t.equal(store.kept()[0], 2);
  t.equal(counts.dropped, 2);
});
