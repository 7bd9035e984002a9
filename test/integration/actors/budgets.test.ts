/**
 * Two noisy tenants fill a shared stream: they lose their own oldest messages, and no other tenant
 * loses any.
 */
import { jetstream, jetstreamManager, type JetStreamManager } from '@nats-io/jetstream';
import { headers } from '@nats-io/transport-node';
import t, { type Test } from 'tap';
import { createBudgets } from '../../../actors/retention/budgets.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { createSlices } from '../../../lib/time/slices.ts';
import { streams } from '../../../schemas/records/buckets.ts';
import { authorsHeader } from '../../../schemas/records/event-authors.ts';
import { limits } from '../../../schemas/limits.ts';
import { quietLog } from '../../actors/support.ts';
import { startCluster, type Ground } from './support.ts';
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

/**
 * The quiet tenant writes one message a round. Over all rounds, each of the noisy ones writes three
 * times the size of the stream.
 */
async function write(ground: Ground, kind: Kind, afterRound: () => Promise<void>): Promise<Map<string, number[]>> {
  const js = jetstream(ground.nc);
  const written = new Map<string, number[]>();
  for (let round = 0; round < quietMessages; round++) {
    await js.publish(kind.subjectOf('quiet', 1), `small ${round}`);
    // Less than what is free above the share at which budgets are applied.
    for (let index = 0; index < 40; index++) {
      const subject = kind.subjectOf(index % 2 === 0 ? 'noisy' : 'loud', index % 3);
      const { seq } = await js.publish(subject, `${round} ${index} ${filler}`);
      written.set(subject, [...(written.get(subject) ?? []), seq]);
    }
    await afterRound();
  }
  return written;
}

async function ground(t: Test, { stream }: Kind): Promise<{ one: Ground; manager: JetStreamManager }> {
  const one = await startCluster(t, 1);
  const manager = await jetstreamManager(one.nc);
  await manager.streams.update(stream, { max_bytes: maxBytes });
  return { one, manager };
}

/** Applies the budgets to both streams once. */
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
    onTrimmed: (_stream, _of, messages) => void (trimmed += messages),
    random: Math.random,
  });
  t.teardown(() => budgets.stop());
  await budgets.look();
  return { trimmed, failures };
}

/** Simulates a server that lists this many other subjects first, with no more in one answer. */
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
      const others = Array.from({ length: before }, (_, index) => [`host.h1.log.a-many.c${index}`, 0]);
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

t.test('budgets count more subjects than one answer of the server lists', async (t) => {
  const [logs] = kinds as [Kind];
  const { one, manager } = await ground(t, logs);
  const js = jetstream(one.nc);
  for (let index = 0; index < 200; index++) await js.publish(`host.h2.log.z-noisy.c${index}`, filler);
  const offsets: number[] = [];
  const listed = 100_000;
  const nc = withSubjectsBefore(one, logs.stream, listed, offsets);
  const { trimmed, failures } = await lookOnce(t, { ...one, nc });
  t.same(failures, []);
  t.same(offsets.slice(0, 2), [0, listed], 'each page once');
  t.ok(trimmed > 0, 'the tenant of the second page is trimmed');
  t.equal((await manager.streams.info(logs.stream)).state.messages, 200 - trimmed);
});

t.test('authors of events count as their bytes do', async (t) => {
  const [, events] = kinds as [Kind, Kind];
  const { one, manager } = await ground(t, events);
  const js = jetstream(one.nc);
  const head = headers();
  head.set(authorsHeader, filler);
  const [authored, plain] = [events.subjectOf('authored', 1), events.subjectOf('plain', 1)];
  for (let index = 0; index < 190; index++) await js.publish(authored, 'x', { headers: head });
  for (let index = 0; index < 500; index++) await js.publish(plain, 'x');
  t.same((await lookOnce(t, one)).failures, []);
  t.ok((await countOf(manager, events.stream, authored)) < 190);
  t.equal(await countOf(manager, events.stream, plain), 500, 'a tenant with less than its share loses nothing');
});

for (const kind of kinds) {
  const { stream, subjectOf } = kind;
  const quiet = subjectOf('quiet', 1);

  t.test(`${stream}: without budgets, noisy tenants evict the quiet one`, async (t) => {
    const { one, manager } = await ground(t, kind);
    await write(one, kind, async () => {});
    t.ok((await countOf(manager, stream, quiet)) < quietMessages);
  });

  t.test(`${stream}: with budgets, each noisy tenant loses its own oldest`, async (t) => {
    const { one, manager } = await ground(t, kind);
    let trimmed = 0;
    const budgets = createBudgets({
      nc: one.nc,
      owned: () => [0],
      slices: createSlices({ monotonicMs: () => systemClock.monotonicMs() }),
      log: quietLog,
      onTrimmed: (_stream, _of, messages) => void (trimmed += messages),
      random: Math.random,
    });
    t.teardown(() => budgets.stop());
    const written = await write(one, kind, () => budgets.look());

    t.equal(await countOf(manager, stream, quiet), quietMessages, 'the quiet tenant has all');
    const { state } = await manager.streams.info(stream, { subjects_filter: '>' });
    t.ok(state.bytes <= maxBytes * limits.budgetFrom, 'the stream is below its share');
    t.equal(trimmed, quietMessages * 40 + quietMessages - state.messages, 'what was removed was counted');
    t.ok(state.messages > quietMessages + 50, 'no more was removed than needed');
    for (const [subject, sequences] of written) {
      const left = await countOf(manager, stream, subject);
      const oldest = await manager.direct.getMessage(stream, { seq: 1, next_by_subj: subject });
      t.equal(oldest?.seq, sequences.at(-left), `${subject} keeps its newest`);
    }
  });
}
