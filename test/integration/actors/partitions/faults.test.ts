/**
 * The partition runtime under faults of its store. The store is the real one, with lost
 * acknowledgements, delayed puts, and processes that die at the worst moment.
 */
import { randomUUID } from 'node:crypto';
import t, { type Test } from 'tap';
import { Registry } from 'prom-client';
import { Fleet } from '../../../../actors/endpoints/fleet.ts';
import { createMetrics } from '../../../../actors/metrics.ts';
import { encodeValue } from '../../../../actors/runtime/journal/codec.ts';
import {
  createEventSink,
  createJetStreamStore,
  createJournalStore,
} from '../../../../actors/runtime/store/jetstream-store.ts';
import type { Partition } from '../../../../actors/partition.ts';
import type { Store, WriteOutcome } from '../../../../actors/runtime/store/store.ts';
import { sleep, within } from '../../../../lib/time/backoff.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import { readStream } from '../../../../lib/nats/direct-reads.ts';
import { buckets, keys, streams } from '../../../../schemas/records/buckets.ts';
import type { Container } from '../../../../schemas/api/container.ts';
import type { EventBody } from '../../../../schemas/api/event.ts';
import type { ContainerId, MemberId } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import type { ReadAsk, WriteAsk } from '../../../../schemas/wire/asks.ts';
import { notOwner, type AnswerCode } from '../../../../schemas/wire/codec.ts';
import { subjects } from '../../../../schemas/wire/subjects.ts';
import { containerId, endless, operation, specOf, tenantId } from '../../../actors/support.ts';
import { memoryJournals } from '../../../actors/support/journals.ts';
import { createPartition } from '../../../actors/support/partition.ts';
import { startCluster, type Ground } from '../support.ts';

const tenant = tenantId('acme');
const partitionNumber = 0;
const bucket = buckets.state.bucket(partitionNumber);

const realStore = ({ nc }: Ground): Store => createJetStreamStore(nc, bucket, randomUUID);

let members = 0;

/** Some stand for processes that died, and would go on for ever. */
const partitions: Partition[] = [];
t.teardown(() => {
  for (const partition of partitions) partition.drop();
});

/** A process with the partition; `faults`: of the store of its journal. */
function partitionOn(ground: Ground, store: Store, faults: (real: Store) => Partial<Store> = () => ({})) {
  const member = `member-${++members}` as MemberId;
  const storeOf = (of: MemberId): Store => {
    const real = createJournalStore(ground.nc, of, randomUUID);
    return of === member ? { ...real, ...faults(real) } : real;
  };
  const fleet = new Fleet({ clock: systemClock, partitions: 1, hostUnknownMs: 60_000 });
  const lost: number[] = [];
  let loads = 0;
  let unknown = 0;
  const registry = new Registry();
  const { observer } = createMetrics(registry);
  const partition = createPartition({
    fleet,
    store,
    lease: { ...endless, member },
    journals: memoryJournals(undefined, {
      storeOf,
      // As the partition manager does: the member is dead, and has no partition.
      onSealed: () => {
        partition.drop();
        lost.push(partition.number);
      },
      observer: { journal: () => {}, unknown: () => unknown++ },
    }),
    events: createEventSink(ground.nc, randomUUID),
    onLost: ({ number }) => lost.push(number),
    observer: { ...observer, load: () => loads++, unknown: () => unknown++ },
  });
  partitions.push(partition);
  const refusesWrites = async (): Promise<boolean> =>
    /^longshore_actors_writes_blocked\{partition="0"\} 1$/m.test(await registry.metrics());
  return { member, partition, lost, refusesWrites, counts: () => ({ loads, unknown }) };
}

interface Answered {
  readonly code: AnswerCode;
  readonly body: string;
}

type Loose<T> = T extends { rid: string } ? Omit<T, 'rid' | 'budgetMs'> : never;

const read = async (partition: Partition, ask: Loose<ReadAsk>): Promise<Answered> =>
  within(
    new Promise((resolve) =>
      partition.read({ rid: 'r', budgetMs: 10_000, ...ask }, (code, body) => resolve({ code, body })),
    ),
    10_000,
    ask.type,
  );

const write = async (partition: Partition, ask: Loose<WriteAsk>): Promise<Answered> =>
  within(
    new Promise((resolve) =>
      partition.write({ rid: 'r', budgetMs: 10_000, ...ask }, undefined, (code, body) => resolve({ code, body })),
    ),
    10_000,
    ask.type,
  );

const createAsk = (name: string, id: ContainerId = containerId()) =>
  ({ type: 'container.create', tenant, id, op: operation(), spec: specOf(name), idempotency: null }) as const;

async function names(partition: Partition): Promise<string[]> {
  const { body } = await read(partition, { type: 'container.list', tenant, limit: 100, before: null });
  return (JSON.parse(body) as { data: Container[] }).data.map(({ name }) => name).sort();
}

/** A second process on the same bucket, after the first has died. */
async function reopened(t: Test, ground: Ground) {
  const { partition } = partitionOn(ground, realStore(ground));
  t.teardown(() => partition.release());
  await partition.start();
  return partition;
}

t.test('a write with a lost acknowledgement is answered, and executed once', async (t) => {
  const ground = await startCluster(t, 1);
  let losing = false;
  const { partition, counts } = partitionOn(ground, realStore(ground), (real) => ({
    put: async (entry, epoch) => {
      const outcome = await real.put(entry, epoch);
      if (!losing) return outcome;
      losing = false;
      return { kind: 'unknown', cause: new Error('lost') };
    },
  }));
  t.teardown(() => partition.release());
  await partition.start();
  await write(partition, createAsk('before'));
  losing = true;
  const answers = await Promise.all(['a', 'b', 'c'].map(async (name) => write(partition, createAsk(name))));
  t.ok(answers.every(({ code }) => code === 'created'));
  t.same(await names(partition), ['a', 'b', 'before', 'c']);
  t.same(counts(), { loads: 1, unknown: 1 });
});

t.test('the server refuses a put that arrives after the owner gave up on it', async (t) => {
  const ground = await startCluster(t, 1);
  let holding = false;
  let land: () => Promise<WriteOutcome> = async () => Promise.reject(new Error('nothing was held'));
  const { partition } = partitionOn(ground, realStore(ground), (real) => ({
    put: async (entry, epoch) => {
      if (!holding) return real.put(entry, epoch);
      holding = false;
      land = async () => real.put(entry, epoch);
      return { kind: 'unknown', cause: new Error('given up') };
    },
  }));
  t.teardown(() => partition.release());
  await partition.start();
  holding = true;
  t.equal((await write(partition, createAsk('late'))).code, 'created');
  t.equal((await write(partition, createAsk('after'))).code, 'created');
  t.match(await land(), { kind: 'fenced' });
  t.same(await names(await reopened(t, ground)), ['after', 'late']);
});

t.test('after a crash before the checkpoint the journal has everything, and each event one id', async (t) => {
  const ground = await startCluster(t, 1);
  const real = realStore(ground);
  const { partition } = partitionOn(ground, { ...real, putBatch: async () => new Promise<WriteOutcome>(() => {}) });
  await partition.start();
  const creates = ['a', 'b', 'c'].map((name) => createAsk(name));
  for (const create of creates) await write(partition, create);
  await write(partition, { type: 'container.delete', tenant, id: creates[0]?.id as ContainerId, op: operation() });
  const before = await real.load(partition.epoch);
  t.notOk(
    before.some(({ key }) => key.startsWith('container.')),
    'nothing was checkpointed',
  );

  const next = await reopened(t, ground);
  t.same(await names(next), ['b', 'c'], 'deleted, then loaded: it stays deleted');
  for (const create of creates.slice(1)) t.equal((await write(next, create)).code, 'created');
  await next.checkpointed();
  const after = new Map((await real.load(next.epoch)).map(({ key, value }) => [key, value]));
  t.ok(after.has(keys.container(tenant, creates[1]?.id as ContainerId)));

  const told: EventBody[] = [];
  const everything = {
    stream: streams.events.name,
    filter: subjects.eventsOfTenant(tenant),
    from: { seq: 1 },
    batchMessages: 100,
    batchBytes: 1024 * 1024,
    timeoutMs: 5000,
  };
  for await (const { data } of readStream(ground.nc, everything)) {
    told.push(...(JSON.parse(Buffer.from(data).toString()) as EventBody[]));
  }
  const distinct = new Map(told.map((event) => [event.id, event]));
  t.ok(told.length > distinct.size, 'they were published twice');
  t.same([...distinct.values()].map(({ type, name }) => `${type} ${name}`).sort(), [
    'created a',
    'created b',
    'created c',
    'delete_requested a',
    'removed a',
  ]);
});

t.test('a process that lost its partition to another commits nothing more, and reports the loss', async (t) => {
  const ground = await startCluster(t, 1);
  const { partition, lost } = partitionOn(ground, realStore(ground));
  await partition.start();
  await write(partition, createAsk('mine'));
  const next = await reopened(t, ground);
  t.equal((await write(partition, createAsk('stolen'))).code, notOwner);
  t.same(lost, [partitionNumber]);
  t.notOk(partition.isServing);
  t.same(await names(next), ['mine']);
});

t.test('a damaged record is quarantined and counted, and the rest serves', async (t) => {
  const ground = await startCluster(t, 1);
  const { partition } = partitionOn(ground, realStore(ground));
  await partition.start();
  const [good, bad] = [createAsk('good'), createAsk('bad')];
  await write(partition, good);
  await write(partition, bad);
  await partition.checkpointed();
  const subject = `$KV.${bucket}.${keys.container(tenant, bad.id)}`;
  const intact = encodeValue({ kind: 'container' });
  await ground.nc.request(subject, Buffer.from(intact).toString().replace('container', 'cantainer'));

  const next = await reopened(t, ground);
  t.same(await names(next), ['good']);
  t.equal((await read(next, { type: 'container.get', tenant, id: bad.id })).code, 'internal', 'not “not found”');
  t.same([...next.view.damagedContainers()], [bad.id], 'every host leaves it as it is');
  const { body } = await read(next, { type: 'tenant.quota', tenant, region: '*' });
  t.equal((JSON.parse(body) as { data: { usage: { containers: number } } }).data.usage.containers, 2);
});

t.test('a partition whose journal has a gap is not served', async (t) => {
  const ground = await startCluster(t, 1);
  const real = realStore(ground);
  const { partition, member } = partitionOn(ground, {
    ...real,
    putBatch: async () => new Promise<WriteOutcome>(() => {}),
  });
  await partition.start();
  for (const name of ['a', 'b', 'c']) await write(partition, createAsk(name));
  const epoch = (await createJournalStore(ground.nc, member, randomUUID).readEpoch()).revision;
  const damaged = { key: keys.entry(2), value: Buffer.from('bit rot') };
  t.match(await createJournalStore(ground.nc, member, randomUUID).put(damaged, epoch), { kind: 'written' });
  const { partition: next } = partitionOn(ground, real);
  void next.start();
  t.teardown(() => next.release());
  await sleep(500);
  t.notOk(next.isServing);
});

t.test('a partition whose checkpoint is far behind refuses writes, serves reads, and recovers', async (t) => {
  const ground = await startCluster(t, 1);
  const real = realStore(ground);
  let release = (): void => {};
  const gate = new Promise<void>((resolve) => (release = resolve));
  const { partition, refusesWrites } = partitionOn(ground, {
    ...real,
    putBatch: async (writes, epoch) => {
      await gate;
      return real.putBatch(writes, epoch);
    },
  });
  t.teardown(() => partition.release());
  await partition.start();
  await write(partition, createAsk('a'));
  t.notOk(await refusesWrites());
  let refused: Answered | undefined;
  const bytes = limits.recordBytes / 2;
  for (let commits = 0; commits * bytes <= limits.uncheckpointedBytes && refused === undefined; commits++) {
    const settings = { regions: [`r${commits}`.padEnd(bytes, '-')] } as unknown as Extract<
      WriteAsk,
      { type: 'tenant.put' }
    >['settings'];
    // One tenant alone may not fill it.
    const one = tenantId(`t${commits}`);
    const answer = await write(partition, { type: 'tenant.put', tenant: one, settings, op: operation() });
    if (answer.code !== 'ok') refused = answer;
  }
  t.equal(refused?.code, 'unavailable');
  t.ok(await refusesWrites(), 'the metric says so');
  t.same(await names(partition), ['a']);
  release();
  await partition.checkpointed();
  t.notOk(await refusesWrites(), 'and that it is over, before anybody writes');
  t.equal((await write(partition, createAsk('b'))).code, 'created');
  t.same(await names(await reopened(t, ground)), ['a', 'b']);
});

t.test('events that cannot be stored do not hold up those of other partitions', async (t) => {
  const ground = await startCluster(t, 1);
  const sink = createEventSink(ground.nc, randomUUID);
  const event = (container: string, id: string) => ({
    subject: subjects.event(tenant, container as ContainerId),
    payload: JSON.stringify([{ id }]),
  });
  // The first event is published alone; the others wait for it and share a batch.
  const outcomes = await Promise.allSettled([
    sink.publish([event('a', '0-1-0')]),
    sink.publish([event('b', '0-1-1'), event('b', '0-1-2')]),
    sink.publish([{ ...event('c', '0-1-3'), subject: 'of.no.stream' }]),
    sink.publish([event('d', '0-1-4')]),
  ]);
  t.same(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'fulfilled'],
  );
  const stored: string[] = [];
  const all = { stream: streams.events.name, filter: 'event.>', from: { seq: 1 } } as const;
  for await (const { data } of readStream(ground.nc, {
    ...all,
    batchMessages: 100,
    batchBytes: 1024 * 1024,
    timeoutMs: 5000,
  })) {
    stored.push(...(JSON.parse(Buffer.from(data).toString()) as { id: string }[]).map(({ id }) => id));
  }
  t.same(stored.toSorted(), ['0-1-0', '0-1-1', '0-1-2', '0-1-4']);
});
