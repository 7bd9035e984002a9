/**
 * The lines of the audit in the runtime (ADR 42): a line is in the commit of its write, its
 * answer waits for it, and a repeated ask leaves no second one. In memory, where a commit can be
 * held and a process can die at any moment.
 */
import t from 'tap';
import type { EventSink } from '../../../actors/runtime/store/store.ts';
import type { AuditLine } from '../../../schemas/api/audit/line.ts';
import { until } from '../../support/until.ts';
import { containerId, operation, specOf, tenantId } from '../support.ts';
import { gatedJournals, successiveMembers } from '../support/journals.ts';
import { createMemorySink, createMemoryStore, MemoryBucket, type Told } from '../support/memory-store.ts';
import { createPartition, isPending, writeOf, type Answered } from '../support/partition.ts';

const tenant = tenantId('acme');
const by = { tenant, subject: 'ann', token: 't1', address: '192.0.2.7' };

/** Asks that leave one line each: a write, a refusal, and a write that finds all as it is asked. */
const id = containerId();
const create = {
  type: 'container.create',
  tenant,
  id,
  spec: specOf('web'),
  idempotency: null,
  cause: { by, action: 'container.create', target: {} },
} as const;
const refused = {
  type: 'container.start',
  tenant,
  id: containerId(),
  cause: { by, action: 'container.start', target: {} },
} as const;
const unchanged = {
  type: 'container.start',
  tenant,
  id,
  cause: { by, action: 'container.start', target: { id } },
} as const;

const linesIn = (told: readonly Told[]): AuditLine[] =>
  told.flatMap(({ payload }) => JSON.parse(payload) as AuditLine[]);
const outcomesIn = (told: readonly Told[]): string[] =>
  linesIn(told).map(({ action, outcome }) => `${action} ${outcome}`);

/** Publishes nothing: the process dies before. */
const silent: EventSink = { publish: async () => new Promise<never>(() => {}) };

t.test('an answer waits for the commit of its line', async (t) => {
  const gate = gatedJournals();
  const told: Told[] = [];
  const partition = createPartition({
    store: createMemoryStore(new MemoryBucket()),
    events: createMemorySink([]),
    audit: createMemorySink(told),
    journals: gate.journals,
  });
  t.teardown(() => partition.release());
  await partition.start();
  await writeOf(partition, { ...create, op: operation() });
  gate.shut();
  const waiting = {
    'a refusal': writeOf(partition, { ...refused, op: operation() }),
    'a write that changes nothing': writeOf(partition, { ...unchanged, op: operation() }),
  };
  for (const [what, answer] of Object.entries(waiting)) t.ok(await isPending(answer), what);
  gate.open();
  t.equal((await waiting['a refusal']).code, 'not_found');
  t.equal((await waiting['a write that changes nothing']).code, 'ok');
  await until('told', () => linesIn(told).length >= 3);
});

t.test('an answer has its line, though its owner dies before it has published it', async (t) => {
  const bucket = new MemoryBucket();
  const nextMember = successiveMembers();
  const store = createMemoryStore(bucket);
  const first = createPartition({ store, events: createMemorySink([]), audit: silent, ...nextMember() });
  await first.start();
  t.equal((await writeOf(first, { ...create, op: operation() })).code, 'created');
  t.equal((await writeOf(first, { ...refused, op: operation() })).code, 'not_found');
  t.equal((await writeOf(first, { ...unchanged, op: operation() })).code, 'ok');
  first.drop();

  const told: Told[] = [];
  const audit = createMemorySink(told);
  const next = createPartition({ store, events: createMemorySink([]), audit, ...nextMember() });
  t.teardown(() => next.release());
  await next.start();
  await until('the next owner tells', () => linesIn(told).length >= 3);
  t.same(outcomesIn(told), ['container.create done', 'container.start not_found', 'container.start done']);
  t.match(linesIn(told)[0], { tenant, by, request_id: 'r', target: { id } });
});

t.test('an ask that comes again leaves no second line, at the same owner and at the next', async (t) => {
  const bucket = new MemoryBucket();
  const nextMember = successiveMembers();
  const told: Told[] = [];
  const audit = createMemorySink(told);
  const parts = { store: createMemoryStore(bucket), events: createMemorySink([]), audit };
  const asks = [create, refused, unchanged].map((ask) => ({ ...ask, op: operation() }));
  const first = createPartition({ ...parts, ...nextMember() });
  await first.start();
  const answers: Answered[] = [];
  for (const ask of asks) answers.push(await writeOf(first, ask));
  for (const [index, ask] of asks.entries()) t.same(await writeOf(first, ask), answers[index], `${ask.type} again`);
  first.drop();
  const next = createPartition({ ...parts, ...nextMember() });
  t.teardown(() => next.release());
  await next.start();
  for (const [index, ask] of asks.entries()) t.same(await writeOf(next, ask), answers[index], `${ask.type} later`);
  // Its own line shows that all lines before it have been published.
  await writeOf(next, { ...refused, op: operation() });
  const expected = ['container.create done', 'container.start not_found', 'container.start done'];
  await until('the last is told', () => outcomesIn(told).length > expected.length);
  const ids = new Map(linesIn(told).map((line) => [line.id, `${line.action} ${line.outcome}`]));
  t.same([...ids.values()], [...expected, 'container.start not_found']);
});

t.test('while AUDIT is away, what one tenant is refused takes no write from another', async (t) => {
  const partition = createPartition({
    store: createMemoryStore(new MemoryBucket()),
    events: createMemorySink([]),
    audit: { publish: async () => Promise.reject(new Error('the stream is away')) },
  });
  t.teardown(() => partition.drop());
  await partition.start();
  const cause = {
    by: { ...by, subject: 'x'.repeat(200) },
    action: 'container.start',
    target: { id: 'y'.repeat(4000) },
  };
  const refuse = () => writeOf(partition, { ...refused, cause, op: operation() });
  const codes = new Set<string>();
  let count = 0;
  for (; count < 6000 && !codes.has('rate_limited'); count += 200)
    for (const { code } of await Promise.all(Array.from({ length: 200 }, refuse))) codes.add(code);
  t.same([...codes], ['not_found', 'rate_limited']);
  t.ok(count > 1500, `a tenant alone has half of the room: ${count}`);
  const { code, body } = await refuse();
  t.match(JSON.parse(body), { message: /AUDIT takes no events/, retry_after_seconds: 10 }, code);
  const other = tenantId('other');
  const theirs = {
    ...create,
    tenant: other,
    id: containerId(),
    cause: { ...create.cause, by: { ...by, tenant: other } },
  };
  t.equal((await writeOf(partition, { ...theirs, op: operation() })).code, 'created');
});
