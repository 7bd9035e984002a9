/**
 * A write that was refused, or changed nothing, is not done later: a copy of its message may come
 * late.
 */
import t, { type Test } from 'tap';
import { Operations, unchangedKept, shortAnswerBytes, longAnswersBytes } from '../../../actors/runtime/operations.ts';
import type { Partition } from '../../../actors/partition.ts';
import type { OperationId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { containerId, operation, specOf, tenantId } from '../support.ts';
import { MemoryBucket, createMemorySink, createMemoryStore } from '../support/memory-store.ts';
import { createPartition, writeOf } from '../support/partition.ts';
import { acme } from '../support/records.ts';
import { sealedAs } from '../support/secrets.ts';
import { home, madeNetwork, peerId } from '../support/vpn.ts';

async function serving(t: Test): Promise<Partition> {
  const store = createMemoryStore(new MemoryBucket());
  const partition = createPartition({ store, events: createMemorySink([]) });
  await partition.start();
  t.teardown(() => partition.release());
  return partition;
}
const create = (op: OperationId, id = containerId()) =>
  ({ type: 'container.create', tenant: acme, id, spec: specOf('web'), idempotency: null, op }) as const;

t.test('a create whose name was taken, again when it is free', async (t) => {
  const partition = await serving(t);
  const first = create(operation());
  t.equal((await writeOf(partition, first)).code, 'created');
  const late = create(operation());
  const refusal = await writeOf(partition, late);
  t.equal(refusal.code, 'invalid');
  await writeOf(partition, { type: 'container.delete', tenant: acme, id: first.id, op: operation() });
  t.notOk(partition.view.tenant(acme).names.has('web'), 'the name is free');
  t.same(await writeOf(partition, late), refusal, 'the same message again');
  t.equal(partition.view.tenant(acme).containers.has(late.id), false);
  t.equal((await writeOf(partition, create(operation()))).code, 'created', 'another request');
});

t.test('a start of what runs, again when it was stopped', async (t) => {
  const partition = await serving(t);
  const { id, ...first } = create(operation());
  await writeOf(partition, { ...first, id });
  const write = (type: 'container.start' | 'container.stop', op = operation()) =>
    writeOf(partition, { type, tenant: acme, id, op });
  const desired = () => partition.view.tenant(acme).containers.get(id)?.desired;
  const late = operation();
  t.equal((await write('container.start', late)).code, 'ok', 'it changed nothing');
  await write('container.stop');
  t.match(await write('container.start', late), { code: 'ok' }, 'the same message again');
  t.equal(desired(), 'stopped', 'does not start it');
  await write('container.start');
  t.equal(desired(), 'running', 'another request does');
});

t.test('long refusals of one tenant are kept up to its share, and then it is told to wait', async (t) => {
  const partition = await serving(t);
  const cause = {
    by: { tenant: acme, subject: 'ann', token: 't1', address: '192.0.2.7' },
    action: 'secret.delete',
    target: {},
  };
  const secret = { type: 'secret.put', tenant: acme, name: 'x', version: 1, sealed: sealedAs('s') } as const;
  t.equal((await writeOf(partition, { ...secret, op: operation() })).code, 'created');
  const settings = { caps: { containers: null, cpu_millis: null, mem_bytes: null } };
  await writeOf(partition, { type: 'tenant.put', tenant: acme, settings, op: operation() });
  const secrets = { env: { A: 'x' }, files: {} };
  for (let index = 0; index < limits.secretUsersShown; index++) {
    const made = create(operation());
    await writeOf(partition, { ...made, spec: specOf(`web-${index}`) });
    const use = { type: 'container.secrets.put', tenant: acme, id: made.id, secrets } as const;
    t.equal((await writeOf(partition, { ...use, op: operation() })).code, 'ok');
  }
  const remove = { type: 'secret.remove', tenant: acme, name: 'x', cause } as const;
  const first = { ...remove, op: operation() };
  const refusal = await writeOf(partition, first);
  t.equal(refusal.code, 'conflict');
  t.ok(refusal.body.length > shortAnswerBytes, `${refusal.body.length} bytes`);
  const most = longAnswersBytes / 2 / refusal.body.length;
  const codes = new Map<string, number>();
  for (let count = 0; count < most + 500; count += 500) {
    const asked = Array.from({ length: 500 }, async () => writeOf(partition, { ...remove, op: operation() }));
    for (const { code } of await Promise.all(asked)) codes.set(code, (codes.get(code) ?? 0) + 1);
    await partition.checkpointed();
  }
  t.same([...codes.keys()], ['conflict', 'rate_limited']);
  t.ok((codes.get('conflict') ?? 0) >= most - 1, `${codes.get('conflict')} of ${most}`);
  t.same(await writeOf(partition, first), refusal, 'a repetition gets the first answer');
  const { code, body } = await writeOf(partition, { ...remove, op: operation() });
  t.match(JSON.parse(body), { message: /long answers/, retry_after_seconds: 10 }, code);
  const other = { ...create(operation()), tenant: tenantId('other') };
  t.equal((await writeOf(partition, other)).code, 'created');
});

t.test('messages between partitions are heard as often as they come', async (t) => {
  const partition = await serving(t);
  const by = { tenant: acme, peer: peerId() };
  const told = { there: false, generation: 1, revoked: [] } as const;
  const ask = { type: 'network.learn', network: home, by, told, incarnation: 0, op: operation() } as const;
  t.equal((await writeOf(partition, ask)).code, 'not_found');
  await writeOf(partition, { type: 'network.create', network: home, made: madeNetwork(), op: operation() });
  t.equal((await writeOf(partition, ask)).code, 'ok');
});

t.test('refusals are bounded by count and by time', (t) => {
  const operations = new Operations();
  const record = (n: number) => ({
    op: `op-${n}` as OperationId,
    atMs: 0,
    code: 'conflict' as const,
    answer: { kind: 'body', body: '' } as const,
  });
  for (let n = 0; n <= unchangedKept; n++) operations.addUnchanged({ record: record(n), commit: 0, tenant: '' });
  t.equal(operations.get('op-0' as OperationId), undefined, 'the oldest');
  t.ok(operations.get('op-1' as OperationId));
  for (let ms = 0; ms <= limits.operationTtlMs + 1000; ms += 1000) operations.expire(ms);
  t.equal(operations.get('op-1' as OperationId), undefined);
  t.end();
});
