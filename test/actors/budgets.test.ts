/** A noisy tenant fills a shared stream: it loses its own oldest messages, and no other tenant loses any. */
import { jetstream, jetstreamManager, type JetStreamManager, type StreamState } from '@nats-io/jetstream';
import t, { type Test } from 'tap';
import { trimsOf, type TenantUse } from '../../actors/budgets-decide.ts';
import { createBudgets } from '../../actors/budgets.ts';
import { sleep } from '../../lib/backoff.ts';
import { systemClock } from '../../lib/clock.ts';
import { createSlices } from '../../lib/slices.ts';
import { streams } from '../../schemas/buckets.ts';
import type { TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { quietLog, startCluster, type Ground } from './support.ts';
import { createRandom } from './support/random.ts';

const use = (tenant: string | null, messages: number, bytes: number): TenantUse => ({
  tenant: tenant as TenantId | null,
  messages,
  bytes,
});

t.test('who is trimmed', async (t) => {
  const cases: [string, TenantUse[], number, Record<string, number>][] = [
    ['nobody where all fit', [use('a', 10, 50), use('b', 10, 50)], 100, {}],
    ['the one that is over', [use('a', 100, 1000), use('b', 10, 100)], 600, { a: 50 }],
    ['two, down to one level', [use('a', 100, 400), use('b', 100, 200), use('c', 1, 40)], 340, { a: 37, b: 75 }],
    ['all, where all are equal', [use('a', 10, 100), use('b', 10, 100)], 100, { a: 5, b: 5 }],
    ['never to nothing', [use('a', 3, 3000), use('b', 3, 3)], 10, { a: 1 }],
    ['nobody for what names no tenant', [use('a', 10, 100), use(null, 90, 900)], 600, {}],
    ['who is over beside it', [use('a', 100, 400), use(null, 90, 600)], 600, { a: 75 }],
    ['nobody in an empty stream', [], 10, {}],
  ];
  for (const [name, uses, target, expected] of cases) {
    const bytes = uses.reduce((sum, one) => sum + one.bytes, 0);
    const trims = trimsOf(uses, bytes, target);
    t.same(Object.fromEntries(trims.map(({ tenant, keep }) => [tenant, keep])), expected, name);
  }
});

t.test('of 2,000 streams', async (t) => {
  for (let seed = 0; seed < 2000; seed++) {
    const random = createRandom(seed);
    const uses = Array.from({ length: 1 + random.below(20) }, (_, index) => {
      const messages = 1 + random.below(10_000);
      return use(`t${index}`, messages, messages * (50 + random.below(60_000)));
    });
    const bytes = uses.reduce((sum, one) => sum + one.bytes, 0);
    const target = 1 + random.below(Math.ceil(bytes * 1.2));
    const keeps = new Map(trimsOf(uses, bytes, target).map(({ tenant, keep }) => [tenant, keep]));
    let after = 0;
    let spare = 0;
    for (const one of uses) {
      const size = one.bytes / one.messages;
      const keep = (one.tenant === null ? undefined : keeps.get(one.tenant)) ?? one.messages;
      if (keep < 1 || keep > one.messages) return t.fail(`seed ${seed}: ${one.tenant} keeps ${keep}`);
      if (one.tenant !== null && one.bytes <= target / uses.length && keeps.has(one.tenant)) {
        return t.fail(`seed ${seed}: a tenant within its fair share is trimmed`);
      }
      after += keep * size;
      spare += size;
    }
    // Each keeps one message at least, and whole ones.
    if (after > target + spare) return t.fail(`seed ${seed}: ${after} bytes are left, not ${target}`);
    if (bytes > target && after < target - spare) return t.fail(`seed ${seed}: more is removed than needed`);
  }
  t.pass('they fit, and nobody within a fair share is trimmed');
});

const maxBytes = 256 * 1024;
const quietMessages = 40;
const filler = 'x'.repeat(1000);

interface Kind {
  readonly stream: string;
  readonly subjectOf: (tenant: string, container: number) => string;
}

const kinds: readonly Kind[] = [
  { stream: streams.logs.name, subjectOf: (tenant, container) => `host.h${container}.log.${tenant}.c${container}` },
  { stream: streams.events.name, subjectOf: (tenant, container) => `event.${tenant}.c${container}` },
];

const countOf = async (manager: JetStreamManager, stream: string, filter: string): Promise<number> => {
  const { state } = await manager.streams.info(stream, { subjects_filter: filter });
  return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
};

/** The quiet tenant writes a message a round; the noisy one, in all rounds, many times the size of the stream. */
async function write(ground: Ground, kind: Kind, afterRound: () => Promise<void>): Promise<number> {
  const js = jetstream(ground.nc);
  let sequence = 0;
  for (let round = 0; round < quietMessages; round++) {
    await js.publish(kind.subjectOf('quiet', 1), `small ${round}`);
    // Less than what is free above the share at which the keeper acts.
    for (let index = 0; index < 40; index++) {
      sequence = (await js.publish(kind.subjectOf('noisy', index % 3), `${round} ${index} ${filler}`)).seq;
    }
    await afterRound();
  }
  return sequence;
}

async function ground(t: Test, { stream }: Kind): Promise<{ one: Ground; manager: JetStreamManager }> {
  const one = await startCluster(t, 1);
  const manager = await jetstreamManager(one.nc);
  await manager.streams.update(stream, { max_bytes: maxBytes });
  return { one, manager };
}

/** What was published without waiting for an acknowledgement is there. */
async function storedIn(manager: JetStreamManager, stream: string, messages: number): Promise<StreamState> {
  const endMs = performance.now() + 60_000;
  for (;;) {
    const { state } = await manager.streams.info(stream);
    if (state.messages >= messages) return state;
    if (performance.now() > endMs) throw new Error(`${state.messages} of ${messages} messages are stored`);
    await sleep(50);
  }
}

/** Looks at the streams once. */
async function lookOnce(t: Test, { nc }: Ground): Promise<{ readonly trimmed: number; readonly failures: unknown[] }> {
  let trimmed = 0;
  const failures: unknown[] = [];
  const budgets = createBudgets({
    nc,
    owned: () => [0],
    slices: createSlices({ monotonicMs: () => systemClock.monotonicMs() }),
    log: {
      ...quietLog,
      warn: (event, fields) => {
        if (event === 'budgets_failed') failures.push(fields);
      },
    },
    onTrimmed: (_, messages) => void (trimmed += messages),
  });
  t.teardown(() => budgets.stop());
  await budgets.look();
  return { trimmed, failures };
}

/** As a server answers that lists so many other subjects before its own; it puts no more into one answer. */
function withSubjectsBefore({ nc }: Ground, stream: string, before: number, offsets: number[]): Ground['nc'] {
  const request: Ground['nc']['request'] = async (subject, payload, options) => {
    const asked = typeof payload === 'string' && payload !== '' ? (JSON.parse(payload) as { offset?: number }) : {};
    if (subject !== `$JS.API.STREAM.INFO.${stream}` || asked.offset === undefined) {
      return nc.request(subject, payload, options);
    }
    offsets.push(asked.offset);
    const message = await nc.request(
      subject,
      JSON.stringify({ ...asked, offset: Math.max(0, asked.offset - before) }),
      options,
    );
    const info = message.json<{ total: number; state: { subjects: Record<string, number> } }>();
    info.total += before;
    if (asked.offset < before) {
      const others = Array.from({ length: before }, (_, index) => [`host.h1.log.a-many.c${index}`, 1]);
      info.state.subjects = Object.fromEntries(others) as Record<string, number>;
    }
    return { ...message, string: () => JSON.stringify(info) };
  };
  return new Proxy(nc, {
    get: (target, name) => {
      if (name === 'request') return request;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

t.test('more subjects than one answer of the server lists', async (t) => {
  const [logs] = kinds as [Kind];
  const { one, manager } = await ground(t, logs);
  const js = jetstream(one.nc);
  for (let index = 0; index < 200; index++) await js.publish(logs.subjectOf('z-noisy', index), filler);
  const offsets: number[] = [];
  const listed = 100_000;
  const nc = withSubjectsBefore(one, logs.stream, listed, offsets);
  const { trimmed, failures } = await lookOnce(t, { ...one, nc });
  t.same(failures, []);
  t.same(offsets, [0, listed], 'each page once');
  t.ok(trimmed > 0, 'the tenant of the second page is trimmed');
  t.equal((await manager.streams.info(logs.stream)).state.messages, 200 - trimmed);
});

t.test('what names no tenant is not purged, for it may name all', async (t) => {
  const [logs] = kinds as [Kind];
  const { one, manager } = await ground(t, logs);
  const js = jetstream(one.nc);
  for (let index = 0; index < quietMessages; index++) await js.publish(logs.subjectOf('quiet', 1), `small ${index}`);
  const nameless = 200;
  for (let index = 0; index < nameless; index++) one.nc.publish('host.h1.log.*.c1', filler);
  const state = await storedIn(manager, logs.stream, quietMessages + nameless);
  t.ok(state.bytes > maxBytes * limits.budgetFrom, 'the stream has taken them');
  await lookOnce(t, one);
  t.equal(await countOf(manager, logs.stream, logs.subjectOf('quiet', 1)), quietMessages, 'the quiet tenant has all');
});

for (const kind of kinds) {
  const { stream, subjectOf } = kind;
  const quiet = subjectOf('quiet', 1);

  t.test(`${stream}: without budgets, the noisy tenant evicts the quiet one`, async (t) => {
    const { one, manager } = await ground(t, kind);
    await write(one, kind, async () => {});
    t.ok((await countOf(manager, stream, quiet)) < quietMessages);
  });

  t.test(`${stream}: with budgets, the noisy tenant loses its own oldest`, async (t) => {
    const { one, manager } = await ground(t, kind);
    let trimmed = 0;
    const budgets = createBudgets({
      nc: one.nc,
      owned: () => [0],
      slices: createSlices({ monotonicMs: () => systemClock.monotonicMs() }),
      log: quietLog,
      onTrimmed: (_, messages) => void (trimmed += messages),
    });
    t.teardown(() => budgets.stop());
    const newest = await write(one, kind, () => budgets.look());

    t.equal(await countOf(manager, stream, quiet), quietMessages, 'the quiet tenant has all');
    const { state } = await manager.streams.info(stream, { subjects_filter: '>' });
    t.ok(state.bytes <= maxBytes * limits.budgetFrom, 'the stream is below its share');
    t.equal(trimmed, quietMessages * 40 + quietMessages - state.messages, 'what was removed was counted');
    t.ok(state.messages > quietMessages + 50, 'no more was removed than needed');
    t.equal(state.last_seq, newest);
    // What is left of the noisy tenant are its newest, over all its subjects, without a hole.
    const left = state.messages - quietMessages;
    const found = new Set<number>();
    for (let sequence = newest; found.size < left && sequence > 0; sequence--) {
      const message = await manager.streams.getMessage(stream, { seq: sequence });
      if (message === null) break;
      if (message.subject !== quiet) found.add(sequence);
    }
    t.equal(found.size, left, 'a purge with a wildcard and `keep` keeps the newest of all its subjects');
  });
}
