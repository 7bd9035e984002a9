/** The partition runtime over a bucket in memory, where a commit can be held and let go. */
import t from 'tap';
import { takeBatch } from '../../../actors/runtime/journal/checkpoint.ts';
import { eventMessages } from '../../../actors/runtime/events/event-outbox.ts';
import { eventKind } from '../../../actors/runtime/events/outboxes.ts';
import type { Commit } from '../../../actors/runtime/journal/codec.ts';
import { hostDirtyKey } from '../../../actors/domain/domain.ts';
import type { Partition } from '../../../actors/partition.ts';
import { noChanges, type Changes } from '../../../actors/domain/turn.ts';
import { noReading } from '../../../lib/time/cautious-clock.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import type { EventBody } from '../../../schemas/api/event.ts';
import type { HostRecord } from '../../../schemas/api/host.ts';
import { limits } from '../../../schemas/limits.ts';
import { containerId, endless, hostKey, operation, specOf, tenantId } from '../support.ts';
import { MemoryBucket, createMemorySink, createMemoryStore } from '../support/memory-store.ts';
import { fleetHost, fleetOf, h1 } from '../support/records.ts';
import { gatedJournals } from '../support/journals.ts';
import { createPartition, isPending, readOf, writeOf, type LooseWrite } from '../support/partition.ts';

const tenant = tenantId('acme');

const serving = async (more: Partial<Parameters<typeof createPartition>[0]> = {}): Promise<Partition> => {
  const store = createMemoryStore(new MemoryBucket());
  const partition = createPartition({ store, events: createMemorySink([]), ...more });
  await partition.start();
  return partition;
};

const createAsk = (name: string) =>
  ({
    type: 'container.create',
    tenant,
    id: containerId(),
    op: operation(),
    spec: specOf(name),
    idempotency: null,
  }) as const;

t.test('nothing that speaks of an uncommitted change is answered before its commit', async (t) => {
  const gate = gatedJournals();
  const partition = await serving(gate);
  t.teardown(() => partition.release());
  const create = createAsk('web');
  await writeOf(partition, create);
  gate.shut();
  const container = { tenant, id: create.id };
  const stopping = writeOf(partition, { type: 'container.stop', ...container, op: operation() });
  const waiting = {
    'the write itself': stopping,
    'a read of it': readOf(partition, { type: 'container.get', ...container }),
    'a list with it': readOf(partition, { type: 'container.list', tenant, limit: 10, before: null }),
    'a refusal because of it': writeOf(partition, createAsk('web')),
    'a retry of an earlier write, which shows it': writeOf(partition, create),
  };
  for (const [what, answer] of Object.entries(waiting)) t.ok(await isPending(answer), what);
  const other = await readOf(partition, { type: 'container.list', tenant: tenantId('other'), limit: 10, before: null });
  t.equal(other.code, 'ok', 'what it does not touch is read at once');
  gate.open();
  for (const answer of Object.values(waiting)) await answer;
});

t.test('without a valid lease nothing is answered, from memory or otherwise, until it is valid again', async (t) => {
  let isValid = true;
  const partition = createPartition({
    store: createMemoryStore(new MemoryBucket()),
    events: createMemorySink([]),
    lease: { ...endless, isValid: () => isValid },
  });
  t.teardown(() => partition.release());
  await partition.start();
  const create = createAsk('web');
  await writeOf(partition, create);
  isValid = false;
  const waiting = {
    'a read': readOf(partition, { type: 'container.get', tenant, id: create.id }),
    'a write': writeOf(partition, createAsk('other')),
  };
  for (const [what, answer] of Object.entries(waiting)) t.ok(await isPending(answer), what);
  isValid = true;
  partition.resume();
  t.equal((await waiting['a read']).code, 'ok');
  t.equal((await waiting['a write']).code, 'created');
});

/** By a host that waits for ten seconds. */
const asked = (partition: Partition, dirtyKeys: readonly string[]) => ({
  by: 'host h1',
  untilMs: partition.deadlineOf({ budgetMs: 10_000 }),
  dirtyKeys: () => dirtyKeys,
  bytesOf: () => 0,
});

t.test('the operator’s word about orphans is told after its commit', async (t) => {
  const gate = gatedJournals();
  const partition = await serving(gate);
  t.teardown(() => partition.release());
  const host = hostKey('h1');
  await writeOf(partition, {
    type: 'host.create',
    host,
    region: 'default' as HostRecord['region'],
    joinTokenHash: 'x',
    op: operation(),
  });
  gate.shut();
  const word = writeOf(partition, { type: 'host.update', host, update: { remove_orphans: true }, op: operation() });
  const told: (number | undefined)[] = [];
  partition.project({
    ...asked(partition, [hostDirtyKey(host)]),
    look: (state) => state.host(host)?.orphanWord,
    then: (value) => told.push(value),
  });
  t.ok(await isPending(word));
  t.same(told, []);
  gate.open();
  await word;
  await sleep(1);
  t.match(told, [Number]);
});

t.test('a verdict about a container is given when what it rests on is committed', async (t) => {
  const gate = gatedJournals();
  const partition = await serving(gate);
  t.teardown(() => partition.release());
  const create = createAsk('a');
  await writeOf(partition, create);
  gate.shut();
  const { id } = create;
  const deleted = writeOf(partition, { type: 'container.delete', tenant, id, op: operation() });
  const told: boolean[] = [];
  partition.project({
    ...asked(partition, [hostDirtyKey(hostKey('h1')), keys.container(tenant, id)]),
    look: (state) => state.tenant(tenant).tombstones.has(id),
    then: (value) => told.push(value),
  });
  t.ok(await isPending(deleted));
  t.same(told, []);
  gate.open();
  await deleted;
  await sleep(1);
  t.same(told, [true]);
});

t.test('a host that syncs between two turns of one commit gets the second when it syncs again', async (t) => {
  const gate = gatedJournals();
  const fleet = fleetOf(fleetHost(h1));
  const partition = await serving({ ...gate, fleet });
  t.teardown(() => partition.release());
  const host = h1;
  gate.shut();
  const first = writeOf(partition, createAsk('a'));
  const told: { readonly revision: number; readonly containers: number }[] = [];
  const ask = (): void =>
    partition.project({
      ...asked(partition, [hostDirtyKey(host)]),
      look: (state) => ({ revision: state.revisionOf(host), containers: state.placedOn(host).size }),
      then: (value) => told.push(value),
    });
  ask();
  const second = writeOf(partition, createAsk('b'));
  ask();
  gate.open();
  t.match(await Promise.all([first, second]), [{ code: 'created' }, { code: 'created' }]);
  await sleep(1);
  t.same(
    told.map(({ containers }) => containers),
    [1, 2],
  );
  t.ok((told[0]?.revision ?? 0) < (told[1]?.revision ?? 0), 'what differs bears another revision');
});

t.test('a write whose sender has given up is not done when the lease is valid again', async (t) => {
  let isValid = true;
  const partition = createPartition({
    store: createMemoryStore(new MemoryBucket()),
    events: createMemorySink([]),
    lease: { ...endless, isValid: () => isValid },
  });
  t.teardown(() => partition.release());
  await partition.start();
  isValid = false;
  const late = writeOf(partition, createAsk('late'), 30).catch(() => 'given up');
  const patient = writeOf(partition, createAsk('patient'));
  t.equal(await late, 'given up');
  // A timer may fire a little before its time.
  const endMs = systemClock.monotonicMs() + 2;
  while (systemClock.monotonicMs() < endMs) await sleep(1);
  isValid = true;
  partition.resume();
  t.equal((await patient).code, 'created');
  t.same([...partition.view.tenant(tenant).names.keys()], ['patient']);
});

t.test('a commit without an answer is committed all the same, and reads of the rest go on', async (t) => {
  const gate = gatedJournals();
  const partition = await serving(gate);
  t.teardown(() => partition.release());
  const { epoch } = partition;
  gate.shut();
  const create = writeOf(partition, createAsk('web'));
  gate.open({ kind: 'unknown', cause: new Error('no answer') });
  const other = await readOf(partition, { type: 'container.list', tenant: tenantId('other'), limit: 10, before: null });
  t.equal(other.code, 'ok');
  t.equal((await create).code, 'created');
  t.equal(partition.epoch, epoch, 'hosts hear of no other epoch');
  t.equal((await writeOf(partition, createAsk('next'))).code, 'created');
});

t.test('one answer that can’t be given keeps nobody else from theirs', async (t) => {
  const partition = await serving();
  t.teardown(() => partition.release());
  partition.write({ rid: 'r', budgetMs: 1000, ...createAsk('a') }, undefined, () => {
    throw new Error('the connection is closed');
  });
  t.equal((await writeOf(partition, createAsk('b'))).code, 'created');
  t.equal((await writeOf(partition, createAsk('c'))).code, 'created');
});

t.test('a change that no message holds is left out, and the partition goes on', async (t) => {
  const partition = await serving();
  t.teardown(() => partition.release());
  const create = createAsk('web');
  await writeOf(partition, create);
  const record = partition.view.tenant(tenant).containers.get(create.id) as ContainerRecord;
  const swollen: Changes = {
    ...noChanges,
    records: [{ ...record, observed: { ...record.observed, message: 'x'.repeat(limits.recordBytes) } }],
  };
  let answered = false;
  t.ok(
    partition.change(
      'report',
      () => [swollen],
      () => (answered = true),
    ),
  );
  t.ok(answered);
  t.equal(partition.view.tenant(tenant).containers.get(create.id), record);
  t.notOk(
    partition.change('sweep', () => {
      throw new Error('a bug');
    }),
    'a decision that throws fails alone',
  );
  t.equal((await writeOf(partition, createAsk('next'))).code, 'created');
});

t.test('a partition that is stopped while it loads does not serve', async (t) => {
  const store = createMemoryStore(new MemoryBucket());
  let go = (): void => {};
  const held = new Promise<void>((resolve) => (go = resolve));
  const partition = createPartition({
    store: {
      ...store,
      async *pages(from) {
        await held;
        yield* store.pages(from);
      },
    },
    events: createMemorySink([]),
    onLoaded: () => t.fail('loaded'),
  });
  const starting = partition.start();
  await sleep(5);
  await partition.release();
  go();
  await starting;
  t.notOk(partition.isServing);
});

t.test('a checkpoint batch is bounded in keys, bytes, outcomes and events', async (t) => {
  const id = containerId();
  const entry = (number: number, more: Partial<Commit>): Commit => ({
    number,
    changes: [['container.acme.x', Buffer.from('1 00000000 {}')]],
    operations: [],
    events: [],
    clock: noReading,
    ...more,
  });
  const many = (more: Partial<Commit>) => Array.from({ length: 1000 }, (_, index) => entry(index + 1, more));
  const outcomes = Array.from({ length: 64 }, () => ({
    op: operation(),
    atMs: systemClock.nowMs(),
    code: 'ok' as const,
    answer: { kind: 'container' as const, tenant, id },
  }));
  const toggled = many({ operations: outcomes });
  const taken = toggled.slice(0, takeBatch(toggled));
  t.ok(taken.length > 1);
  const written = JSON.stringify(taken.flatMap(({ operations }) => operations));
  t.ok(written.length < 1024 * 1024, 'the outcomes fit a message');

  const event = {
    subject: `event.acme.${id}`,
    event: {
      id: '0-1-0',
      ts: new Date(0).toISOString(),
      type: 'status' as const,
      container_id: id,
      name: 'web',
      generation: 1,
      host_key: hostKey('h1'),
      status: 'running' as const,
      reason: null,
      message: '\u0001'.repeat(1000),
      exit_code: null,
      request_id: null,
    },
  };
  const chatty = many({ events: Array.from({ length: 16 }, () => event) });
  const told = eventMessages(eventKind, chatty.slice(0, takeBatch(chatty)));
  t.equal(told.length, 1, 'all of one container');
  t.ok((told[0]?.payload.length ?? 0) < 1024 * 1024, 'its events fit a message');

  const wide = Array.from({ length: limits.checkpointBatchMessages + 1 }, (_, index) =>
    entry(index + 1, { changes: [[`tenant.${index}`, Buffer.from('x')]] }),
  );
  t.equal(takeBatch(wide), limits.checkpointBatchMessages);
  const long = many({ changes: [['tenant.a', Buffer.alloc(limits.recordBytes)]] });
  t.equal(takeBatch(long), Math.floor(limits.checkpointBatchBytes / (limits.recordBytes + 8)));
  t.equal(takeBatch([entry(1, { changes: [['tenant.a', Buffer.alloc(limits.checkpointBatchBytes * 2)]] })]), 1);
});

t.test('events lie in the stream in the order of their tenant', (t) => {
  const event = (number: number, owner: string, container: string) => ({
    number,
    events: [{ subject: `event.${owner}.${container}`, event: { id: `0-${number}-0` } as EventBody }],
  });
  const entries = [
    event(1, 'acme', 'a'),
    event(2, 'acme', 'b'),
    event(3, 'rival', 'c'),
    event(4, 'acme', 'b'),
    event(5, 'acme', 'a'),
  ];
  const told = eventMessages(eventKind, entries).map(({ subject, payload }) => [
    subject,
    ...(JSON.parse(payload) as EventBody[]).map(({ id }) => id),
  ]);
  t.same(told, [
    ['event.acme.a', '0-1-0'],
    ['event.acme.b', '0-2-0', '0-4-0'],
    ['event.rival.c', '0-3-0'],
    ['event.acme.a', '0-5-0'],
  ]);
  t.end();
});

t.test('asks that arrive in one tick are one commit', async (t) => {
  const partition = await serving();
  t.teardown(() => partition.release());
  const writes: LooseWrite[] = Array.from({ length: 30 }, () => createAsk(containerId()));
  await Promise.all(writes.map(async (ask) => writeOf(partition, ask)));
  t.equal(partition.last, 1);
});
