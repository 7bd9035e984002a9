/** Bounds of a partition: what it holds while its journal takes nothing, and of one message. */
import t from 'tap';
import { tenantDirtyKey } from '../../../actors/domain/domain.ts';
import type { Partition } from '../../../actors/partition.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import type { NetworkName, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { KiB, MiB } from '../../../schemas/limits/units.ts';
import { until } from '../../support/until.ts';
import { containerId, operation, specOf, tenantId } from '../support.ts';
import { gatedJournals, memoryJournals } from '../support/journals.ts';
import { createMemorySink, createMemoryStore, MemoryBucket } from '../support/memory-store.ts';
import { createPartition, isPending, readOf, writeOf, type Answered } from '../support/partition.ts';
import { madeNetwork, settingsOf } from '../support/vpn.ts';

const acme = tenantId('acme');
const bolt = tenantId('bolt');

async function serving(more: Partial<Parameters<typeof createPartition>[0]>): Promise<Partition> {
  const store = createMemoryStore(new MemoryBucket());
  const partition = createPartition({ store, events: createMemorySink([]), ...more });
  await partition.start();
  return partition;
}

const createAsk = (tenant: TenantId, name: string, envBytes = 0) =>
  ({
    type: 'container.create',
    tenant,
    id: containerId(),
    op: operation(),
    spec: specOf(name, { env: { LONG: 'x'.repeat(envBytes) } }),
    idempotency: null,
  }) as const;

const listOf = (tenant: TenantId) => ({ type: 'container.list', tenant, limit: 100, before: null }) as const;

/** Bytes of the heap that `work` has left in use, at most. */
async function heapTaken(work: () => Promise<void>): Promise<number> {
  const before = process.memoryUsage();
  await work();
  const after = process.memoryUsage();
  return after.heapUsed + after.external - before.heapUsed - before.external;
}

t.test('reads of what is not committed keep few answers, and none beyond their deadline', async (t) => {
  const gate = gatedJournals();
  const partition = await serving(gate);
  t.teardown(() => partition.release());
  const creates = Array.from({ length: 20 }, (_, index) => createAsk(acme, `c${index}`, 30_000));
  for (const create of creates) t.equal((await writeOf(partition, create)).code, 'created');
  gate.shut();
  const stop = writeOf(partition, { type: 'container.stop', tenant: acme, id: creates[0]!.id, op: operation() });
  const codes: string[] = [];
  const ask = (count: number, budgetMs: number): void => {
    for (let index = 0; index < count; index++) {
      partition.read({ ...listOf(acme), rid: 'r', budgetMs }, (code) => codes.push(code));
    }
  };
  const bytes = await heapTaken(async () => {
    ask(500, 100);
    await sleep(150);
    partition.keepTime();
    ask(500, 10_000);
    await sleep(10);
  });
  t.ok(bytes < 100 * MiB, `${Math.round(bytes / MiB)} MiB for a thousand lists of 0.6 MiB`);
  t.same(codes, []);
  gate.open();
  await stop;
  while (codes.length < 500) await sleep(10);
  await sleep(20);
  t.same([codes.length, new Set(codes)], [500, new Set(['ok'])], 'those in time are answered, and no others');
});

t.test('syncs of what is not committed keep few answers of a host, and none beyond their deadline', async (t) => {
  const gate = gatedJournals();
  const partition = await serving(gate);
  t.teardown(() => partition.release());
  const create = createAsk(acme, 'a');
  await writeOf(partition, create);
  gate.shut();
  const stop = writeOf(partition, { type: 'container.stop', tenant: acme, id: create.id, op: operation() });
  let looks = 0;
  const told: string[] = [];
  const bytes = 64 * KiB;
  const ask = (count: number, host: string, budgetMs: number): void => {
    for (let index = 0; index < count; index++) {
      partition.project({
        by: `host ${host}`,
        untilMs: partition.deadlineOf({ budgetMs }),
        dirtyKeys: () => [tenantDirtyKey(acme)],
        look: (state) => (looks++, state.tenant(acme).containers.get(create.id)?.desired),
        bytesOf: () => bytes,
        then: (desired) => told.push(`${host} ${desired}`),
      });
    }
  };
  const kept = limits.answersWaitingBytesOfTenant / bytes;
  ask(3 * kept, 'h1', 100);
  t.equal(looks, kept, 'the others wait alone');
  ask(1, 'h2', 10_000);
  t.equal(looks, kept + 1, 'another host has a share of its own');
  await sleep(150);
  partition.keepTime();
  ask(kept + 1, 'h1', 10_000);
  t.equal(looks, 2 * kept + 1, 'there is room again');
  t.same(told, []);
  gate.open();
  await stop;
  await until('all in time are told', () => told.length >= kept + 2 || undefined);
  await sleep(20);
  t.equal(told.length, kept + 2, 'and no others');
  t.same(new Set(told), new Set(['h1 stopped', 'h2 stopped']));
});

t.test('surveys of what is not committed wait until their deadline', async (t) => {
  const gate = gatedJournals();
  const partition = await serving(gate);
  t.teardown(() => partition.release());
  gate.shut();
  const write = writeOf(partition, createAsk(acme, 'a'));
  const told: number[] = [];
  const survey = (budgetMs: number): void =>
    partition.survey(
      () => budgetMs,
      (value) => told.push(value),
      partition.deadlineOf({ budgetMs }),
    );
  for (const budgetMs of [50, 10_000, 60]) survey(budgetMs);
  await sleep(100);
  t.same(told, []);
  gate.open();
  await write;
  await until('one is told', () => told.length > 0 || undefined);
  t.same(told, [10_000]);
});

t.test('reads of one tenant that wait refuse neither writes nor reads of another', async (t) => {
  const gate = gatedJournals();
  const partition = await serving(gate);
  t.teardown(() => partition.release());
  for (const tenant of [acme, bolt]) await writeOf(partition, createAsk(tenant, 'a'));
  gate.shut();
  const writes = [acme, bolt].map((tenant) => writeOf(partition, createAsk(tenant, 'b')));
  const codes: string[] = [];
  for (let index = 0; index < limits.turnsQueued + 1; index++) {
    partition.read({ ...listOf(acme), rid: 'r', budgetMs: 10_000 }, (code) => codes.push(code));
  }
  t.equal(codes.length, limits.turnsQueued + 1 - limits.answersWaitingOfTenant);
  t.same(new Set(codes), new Set(['unavailable']));
  const read = readOf(partition, listOf(bolt));
  const write = writeOf(partition, createAsk(bolt, 'c'));
  t.ok(await isPending(read));
  t.ok(await isPending(write));
  gate.open();
  for (const answer of [...writes, write]) t.equal((await answer).code, 'created');
  t.equal((await read).code, 'ok');
});

t.test('a write that was executed is not refused when it comes again, however many asks wait', async (t) => {
  const gate = gatedJournals();
  const partition = await serving(gate);
  t.teardown(() => partition.release());
  await writeOf(partition, createAsk(acme, 'a'));
  gate.shut();
  const create = createAsk(acme, 'b');
  const first = writeOf(partition, create);
  const tenants = Array.from({ length: limits.answersWaiting / limits.answersWaitingOfTenant }, (_, index) =>
    tenantId(`t${index}`),
  );
  const writes = tenants.map((tenant) => writeOf(partition, createAsk(tenant, 'c')));
  const refused: string[] = [];
  for (const tenant of tenants) {
    for (let index = 0; index < limits.answersWaitingOfTenant; index++) {
      partition.read({ ...listOf(tenant), rid: 'r', budgetMs: 60_000 }, (code) => {
        if (code !== 'ok') refused.push(code);
      });
    }
  }
  t.same(refused, []);
  t.equal((await readOf(partition, listOf(acme))).code, 'unavailable', 'no more can wait');
  const again: Answered[] = [];
  const repeat = (): void =>
    partition.write({ ...create, rid: 'r', budgetMs: 60_000 }, undefined, (code, body) => again.push({ code, body }));
  repeat();
  await sleep(20);
  t.same(again, [], 'its sender hears nothing, and asks again');
  gate.open();
  const answer = await first;
  t.equal(answer.code, 'created');
  repeat();
  await until('answered', () => again.length > 0 || undefined);
  t.same(again, [answer]);
  t.equal(partition.view.tenant(acme).containers.size, 2);
  for (const write of writes) t.equal((await write).code, 'created');
});

t.test('writes that wait for the journal are bounded in bytes', async (t) => {
  const gate = gatedJournals();
  const partition = await serving(gate);
  t.teardown(() => partition.release());
  await writeOf(partition, createAsk(acme, 'first'));
  gate.shut();
  const first = writeOf(partition, createAsk(acme, 'second'));
  t.ok(await isPending(first));
  const codes: string[] = [];
  const bytes = await heapTaken(async () => {
    for (let index = 0; index < 2000; index++) {
      const create = createAsk(tenantId(`t${Math.floor(index / 20)}`), `c${index}`, 30_000);
      partition.write({ ...create, rid: 'r', budgetMs: 10_000 }, undefined, (code) => codes.push(code));
    }
    await sleep(1);
  });
  t.ok(codes.length > 1000, `${codes.length} are refused`);
  t.same(new Set(codes), new Set(['rate_limited', 'unavailable']));
  t.ok(bytes < 5 * limits.uncommittedBytes, `${Math.round(bytes / MiB)} MiB`);
  gate.open();
  await first;
  while (codes.length < 2000) await sleep(10);
  await partition.checkpointed();
  t.equal((await writeOf(partition, createAsk(acme, 'last'))).code, 'created');
});

t.test('writes of one tenant leave room for those of another, while the journal takes nothing', async (t) => {
  const gate = gatedJournals();
  const partition = await serving(gate);
  t.teardown(() => partition.release());
  const made = createAsk(acme, 'a');
  await writeOf(partition, made);
  gate.shut();
  const codes: string[] = [];
  const update = (index: number) => {
    const patch = { env: { LONG: String(index).padStart(60_000, 'x') } };
    return { type: 'container.update', tenant: acme, id: made.id, patch, op: operation() } as const;
  };
  for (let index = 0; index < 600; index++) {
    partition.write({ ...update(index), rid: 'r', budgetMs: 10_000 }, undefined, (code) => codes.push(code));
  }
  t.same(new Set(codes), new Set(['rate_limited']));
  const { code, body } = await writeOf(partition, update(0));
  t.match(JSON.parse(body), { message: /your writes wait/, retry_after_seconds: 1 }, code);
  const settings = { caps: { containers: 1, cpu_millis: null, mem_bytes: null } };
  const by = { tenant: tenantId('ops'), subject: 'ann', token: 't1', address: '192.0.2.7' };
  const cause = { by, action: 'tenant.put', target: {} };
  const operators = writeOf(partition, { type: 'tenant.put', tenant: acme, settings, cause, op: operation() });
  t.ok(await isPending(operators), 'what an operator does to it is not refused');
  const theirs = writeOf(partition, createAsk(bolt, 'b', 30_000));
  t.ok(await isPending(theirs));
  gate.open();
  t.equal((await theirs).code, 'created');
  t.equal((await operators).code, 'ok');
  t.ok(codes.filter((code) => code === 'ok').length > 50);
  await partition.checkpointed();
  t.equal((await writeOf(partition, update(0))).code, 'ok');
});

t.test('turns of one tenant that wait for the journal leave room for those of another', async (t) => {
  const gate = gatedJournals();
  const partition = await serving(gate);
  t.teardown(() => partition.release());
  gate.shut();
  const codes: string[] = [];
  const cause = { by: { tenant: acme, subject: 'ann', token: 't1', address: '192.0.2.7' }, action: 'a', target: {} };
  const stop = { type: 'container.stop', tenant: acme, id: containerId(), cause, rid: 'r', budgetMs: 10_000 } as const;
  for (let index = 0; index < limits.turnsQueued; index++)
    partition.write({ ...stop, op: operation() }, undefined, (code) => codes.push(code));
  t.same(new Set(codes), new Set(['rate_limited']));
  t.equal(codes.length, limits.turnsQueued / 2 - 1, 'one alone has half of the places');
  const theirs = writeOf(partition, createAsk(bolt, 'b'));
  t.ok(await isPending(theirs));
  gate.open();
  t.equal((await theirs).code, 'created');
});

t.test('writes of one tenant leave room for those of another, while nothing is checkpointed', async (t) => {
  const store = createMemoryStore(new MemoryBucket());
  let isShut = true;
  const away = { kind: 'unknown', cause: new Error('the store is away') } as const;
  const partition = await serving({
    store: { ...store, putBatch: async (...batch) => (isShut ? away : store.putBatch(...batch)) },
  });
  t.teardown(() => partition.release());
  const made = createAsk(acme, 'a');
  await writeOf(partition, made);
  const update = async (index: number, op = operation()): Promise<string> => {
    const patch = { env: { LONG: String(index).padStart(60_000, 'x') } };
    return (await writeOf(partition, { type: 'container.update', tenant: acme, id: made.id, patch, op })).code;
  };
  let count = 0;
  while ((await update(++count)) === 'ok');
  const refused = operation();
  t.equal(await update(0, refused), 'rate_limited');
  t.ok(count > 10, `one alone has half of the room: ${count} updates`);
  t.equal((await writeOf(partition, createAsk(bolt, 'b', 30_000))).code, 'created');
  isShut = false;
  await partition.checkpointed();
  t.equal(await update(0), 'ok');
  t.equal(await update(0, refused), 'rate_limited', 'a copy of the same message that comes late');
});

t.test('turns of one tick that are together too large for a message are two commits', async (t) => {
  const buckets = new Map();
  const partition = await serving({ journals: memoryJournals(buckets) });
  t.teardown(() => partition.release());
  const [one, other] = ['one', 'other'] as [NetworkName, NetworkName];
  for (const network of [one, other]) {
    const made = madeNetwork();
    t.equal((await writeOf(partition, { type: 'network.create', network, made, op: operation() })).code, 'created');
  }
  const put = (network: NetworkName, tenants: number) =>
    writeOf(partition, {
      type: 'network.put',
      network,
      server: null,
      settings: settingsOf({ tenants: Array.from({ length: tenants }, (_, index) => nameOf(index)) }),
      op: operation(),
      cause: {
        by: { tenant: acme, subject: 'ann', token: 't1', address: '192.0.2.7' },
        action: 'network.put',
        target: {},
      },
    });
  // The first leaves the group not full; each outcome is as long as its record.
  const answers = await Promise.all([put(one, 9650), put(other, 16_900), writeOf(partition, createAsk(bolt, 'a'))]);
  t.same(
    answers.map(({ code }) => code),
    ['ok', 'ok', 'created'],
  );
  t.ok(answers[1].body.length > limits.recordBytes * 0.9, `${answers[1].body.length} bytes`);
  t.equal((await writeOf(partition, createAsk(bolt, 'b'))).code, 'created');
  await partition.checkpointed();
});

const nameOf = (index: number): TenantId => tenantId(String(index).padStart(16, 'x'));
