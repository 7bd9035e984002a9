/**
 * No message blocks an actors process: work that 100,000 containers make long is cut into slices.
 * This test counts steps, under a clock that moves by a millisecond with every look, so that a
 * slice has a fixed number of steps.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { NatsConnection } from '@nats-io/transport-node';
import t, { type Test } from 'tap';
import { serveAsks, sourceOf } from '../../../../actors/endpoints/asks.ts';
import { Fleet } from '../../../../actors/endpoints/fleet.ts';
import { PeersSeen } from '../../../../actors/usage/peers-seen.ts';
import { createUsageStore } from '../../../../actors/usage/store.ts';
import { serveHosts } from '../../../../actors/endpoints/hosts/serve.ts';
import { encodeValue } from '../../../../actors/runtime/journal/codec.ts';
import type { Partition } from '../../../../actors/partition.ts';
import type { StoredValue, WriteOutcome } from '../../../../actors/runtime/store/store.ts';
import { recordKey } from '../../../../actors/domain/records.ts';
import { startNats } from '../../../../dev/servers/nats.ts';
import { within } from '../../../../lib/time/backoff.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import { createSlices } from '../../../../lib/time/slices.ts';
import type { ContainerRecord } from '../../../../schemas/api/container.ts';
import { limits } from '../../../../schemas/limits.ts';
import type { Ask } from '../../../../schemas/wire/asks.ts';
import { decodeAnswers, encodeAsks } from '../../../../schemas/wire/codec.ts';
import type { DesiredContainer, Report, ReportAnswer, SyncAnswer } from '../../../../schemas/wire/host.ts';
import { subjects } from '../../../../schemas/wire/subjects.ts';
import { protocolFields } from '../../../../schemas/wire/version.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { agentKey, agentOf, containerId, quietLog } from '../../../actors/support.ts';
import { controlPlane } from '../support.ts';
import { memoryJournals } from '../../../actors/support/journals.ts';
import { storeWith } from '../../../actors/support/memory-store.ts';
import { createPartition, quietObserver } from '../../../actors/support/partition.ts';
import { acme, container, h1, hostRecord, itemOf, observation } from '../../../actors/support/records.ts';
import { reportItemsPerTurn } from '../../../../actors/endpoints/hosts/report.ts';

const deadlineMs = 120_000;
const count = 100_000;
/** The end of one turn and the start of the next may count as one. */
const stepsOfTurns = 2 * (limits.sliceMs + limits.atOnceMs + 4);

const base = container();
const records = Array.from({ length: count }, (_, index): ContainerRecord => ({
  ...base,
  id: containerId(),
  spec: { ...base.spec, name: `c${index}` },
  insertedAtMs: index,
}));

interface Serving {
  readonly nc: NatsConnection;
  readonly partition: Partition;
  /** Counts the turns, by kind. */
  readonly turns: Map<string, number>;
  /** Outcome of the next journal entries. */
  readonly journal: { put: () => Promise<WriteOutcome>; written: () => WriteOutcome; entries: number };
  /** The most steps in one turn of the event loop, and all steps, since the last call. */
  readonly steps: () => { readonly most: number; readonly all: number };
}

/**
 * All containers are of one host and one tenant, behind the subjects that hosts and gateways use.
 */
async function serve(t: Test): Promise<Serving> {
  const nats = await startNats({ dir: temporaryFolder(t) });
  t.teardown(() => nats.stop());
  const nc = await controlPlane(nats);
  t.teardown(() => nc.close());
  let [nowMs, all, ofTurn, most] = [0, 0, 0, 0];
  const slices = createSlices({
    monotonicMs: () => {
      all++;
      most = Math.max(most, ++ofTurn);
      return nowMs++;
    },
  });
  const ending = new AbortController();
  t.teardown(() => ending.abort());
  const countTurns = async (): Promise<void> => {
    for (; !ending.signal.aborted; await nextTurn()) ofTurn = 0;
  };
  void countTurns();
  const turns = new Map<string, number>();
  let sequence = 1;
  const written = (): WriteOutcome => ({ kind: 'written', sequence: ++sequence });
  const journal = { put: async () => Promise.resolve(written()), written, entries: 0 };
  const values = [...records, hostRecord(h1, { publicKey: agentKey })].map((record, index): StoredValue => ({
    key: recordKey(record),
    value: Buffer.from(encodeValue(record)),
    revision: index + 1,
  }));
  const partition = createPartition({
    store: storeWith(values),
    journals: memoryJournals(undefined, {
      storeOf: () => ({
        ...storeWith([]),
        put: async () => {
          journal.entries++;
          return journal.put();
        },
      }),
      onSealed: () => partition.drop(),
    }),
    events: { publish: async () => Promise.resolve() },
    observer: { ...quietObserver, turn: (kind) => void turns.set(kind, (turns.get(kind) ?? 0) + 1) },
  });
  await partition.start();
  const fleet = new Fleet({ clock: systemClock, partitions: 1, hostUnknownMs: 60_000 });
  const entry = {
    key: h1,
    region: 'default',
    cordoned: false,
    draining: false,
    capacity: null,
    lost: false,
    session: 1,
    publicKey: agentOf(h1).user,
  };
  const whole = { partition: 0, epoch: 1, revision: 1, changes: 1, full: true, entries: [entry as never], removed: [] };
  fleet.learn({ ...whole, unreadable: [] });
  const cluster = { id: 'c', partitions: 1, format: 1 } as const;
  const parts = { nc, slices, log: quietLog, refusals: quietLog };
  const onRefused = (): void => void t.fail('a message was refused');
  serveHosts({
    ...parts,
    usage: createUsageStore(nc),
    peersSeen: new PeersSeen(() => 'memory'),
    clock: systemClock,
    cluster,
    owned: () => [partition],
    fleet,
    signJwt: async () => Promise.resolve(''),
    onRefused,
  });
  serveAsks(sourceOf(partition), {
    ...parts,
    clock: systemClock,
    watched: { asked: () => {}, followed: () => {} },
    prepare: () => undefined,
  });
  await nc.flush();
  const steps = (): { most: number; all: number } => {
    const counted = { most, all };
    [most, all] = [0, 0];
    return counted;
  };
  steps();
  return { nc, partition, turns, journal, steps };
}

/** Asks once and collects messages until `isDone`. */
const collect = (
  nc: NatsConnection,
  subject: string,
  payload: string,
  take: (data: string) => boolean,
): Promise<void> =>
  within(
    new Promise((resolve, reject) => {
      const inbox = `_INBOX.${containerId()}`;
      const subscription = nc.subscribe(inbox, {
        callback: (error, message) => {
          if (error !== null) reject(error);
          if (!take(message.string())) return;
          subscription.unsubscribe();
          resolve();
        },
      });
      nc.publish(subject, payload, { reply: inbox });
    }),
    deadlineMs,
    subject,
  );

t.test('100,000 containers in one partition', { timeout: 600_000 }, async (t) => {
  const serving = await serve(t);
  const { nc, steps } = serving;

  await t.test('a sync of their host takes one step for each container', async (t) => {
    const told: DesiredContainer[] = [];
    let parts = 0;
    await collect(nc, subjects.hostSync(agentOf(h1)), JSON.stringify({ v: 1, ...protocolFields, held: {} }), (data) => {
      const answer = JSON.parse(data) as SyncAnswer;
      told.push(...answer.containers);
      return ++parts === answer.parts;
    });
    t.same(
      told.map(({ id }) => id),
      records.map(({ id }) => id),
    );
    const { most, all } = steps();
    t.ok(all >= count && most <= stepsOfTurns, `${all} steps, at most ${most} in a turn`);
  });

  await t.test('each ask of a batch is a step', async (t) => {
    const ask: Ask = { type: 'container.list', tenant: acme, limit: 1, before: null, rid: 'r', budgetMs: deadlineMs };
    const asks = Array.from({ length: limits.batchItems }, () => JSON.stringify(ask));
    const codes = new Map<number, string>();
    await collect(nc, subjects.partition(0), encodeAsks(asks), (data) => {
      for (const { index, code } of decodeAnswers(data)) codes.set(index, code);
      return codes.size === asks.length;
    });
    t.ok([...codes.values()].every((code) => code === 'ok'));
    const { most, all } = steps();
    t.ok(all >= asks.length && most <= stepsOfTurns, `${all} steps, at most ${most} in a turn`);
  });

  const reportOf = (from: number, seq: number): Report => ({
    v: 1,
    ...protocolFields,
    partition: 0,
    session: 1,
    items: records
      .slice(from, from + limits.reportItems)
      .map((record) => itemOf(record, { seq, observation: observation('backoff', { reason: 'exited' }) })),
  });
  const turnsOfReport = Math.ceil(limits.reportItems / reportItemsPerTurn);

  await t.test('a report is taken a few containers at a time, and acknowledged when all are committed', async (t) => {
    const { turns, journal, partition } = serving;
    turns.clear();
    journal.entries = 0;
    let answer: ReportAnswer | undefined;
    const held: (() => void)[] = [];
    journal.put = async () => new Promise((resolve) => held.push(() => resolve(journal.written())));
    const answered = collect(nc, subjects.hostReport(agentOf(h1)), JSON.stringify(reportOf(0, 2)), (data) => {
      answer = JSON.parse(data) as ReportAnswer;
      return true;
    });
    const isCommitted = (): boolean =>
      turns.get('report') === turnsOfReport && partition.committed === partition.last && held.length === 0;
    while (!isCommitted()) {
      t.equal(answer, undefined);
      await nextTurn();
      held.shift()?.();
    }
    await answered;
    t.same(answer, { ...protocolFields, ok: true });
    t.equal(turns.get('report'), turnsOfReport);
    const { containers } = partition.view.tenant(acme);
    for (const { id } of reportOf(0, 2).items) {
      if (containers.get(id)?.observed.status !== 'backoff') return t.fail(`${id} is not as it was reported`);
    }
    journal.put = async () => Promise.resolve(journal.written());
    return undefined;
  });

  await t.test('a report without containers is answered', async (t) => {
    const report = { ...reportOf(0, 3), items: [] };
    const answer = await nc.request(subjects.hostReport(agentOf(h1)), JSON.stringify(report), { timeout: deadlineMs });
    t.same(answer.json(), { ...protocolFields, ok: true });
  });

  await t.test('a report is not acknowledged while a part is uncommitted', async (t) => {
    const { journal, partition } = serving;
    let answer: ReportAnswer | undefined;
    journal.put = async () => Promise.resolve({ kind: 'fenced' });
    const report = JSON.stringify(reportOf(1000, 2));
    nc.subscribe('_INBOX.fenced', { callback: (_, message) => void (answer = message.json<ReportAnswer>()) });
    nc.publish(subjects.hostReport(agentOf(h1)), report, { reply: '_INBOX.fenced' });
    const endMs = performance.now() + deadlineMs;
    while (partition.isServing) {
      if (performance.now() > endMs) throw new Error('nothing was written');
      await nextTurn();
    }
    for (let turn = 0; turn < 2 * turnsOfReport; turn++) await nextTurn();
    await nc.flush();
    t.not(answer?.ok, true, 'its agent says it again');
  });
});
