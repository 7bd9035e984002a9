/**
 * A noisy tenant fills a shared stream: it loses its own oldest messages, and no other tenant loses
 * any.
 */
import { jetstream, jetstreamManager, type JetStreamManager } from '@nats-io/jetstream';
import t, { type Test } from 'tap';
import { addTo, subjectsOfPage, type Counts } from '../../../actors/retention/budgets-count.ts';
import { cutsOf, keptBy, type Use } from '../../../actors/retention/budgets-decide.ts';
import { createBudgets } from '../../../actors/retention/budgets.ts';
import { systemClock } from '../../../lib/clock.ts';
import { createSlices } from '../../../lib/slices.ts';
import { streams } from '../../../schemas/records/buckets.ts';
import { limits } from '../../../schemas/limits.ts';
import { quietLog, startCluster, type Ground } from '../support.ts';
import { createRandom } from '../support/random.ts';

const use = (filter: string, messages: number, bytes: number, parts: readonly Use[] = []): Use => ({
  filter,
  messages,
  bytes,
  parts,
});
const ofParts = (filter: string, parts: readonly Use[]): Use => {
  const sum = (pick: (part: Use) => number) => parts.reduce((all, part) => all + pick(part), 0);
  const [messages, bytes] = [sum((part) => part.messages), sum((part) => part.bytes)];
  return use(filter, messages, bytes, parts);
};
const mostCuts = 10;

t.test('who is cut', async (t) => {
  const many = Array.from({ length: mostCuts + 1 }, (_, index) => use(`h.t${index}`, 10, 100));
  const cases: [string, Use[], number, Record<string, number>][] = [
    ['nobody where all fit', [use('a', 10, 50), use('b', 10, 50)], 100, {}],
    ['the one that is over', [use('a', 100, 1000), use('b', 10, 100)], 600, { a: 50 }],
    ['two, down to one level', [use('a', 100, 400), use('b', 100, 200), use('c', 1, 40)], 340, { a: 37, b: 75 }],
    ['all, where all are equal', [use('a', 10, 100), use('b', 10, 100)], 100, { a: 5, b: 5 }],
    ['never to nothing', [use('a', 3, 3000), use('b', 3, 3)], 10, { a: 1 }],
    ['nobody in an empty stream', [], 10, {}],
    [
      'on a host that is over, the tenant that is',
      [ofParts('h', [use('h.noisy', 100, 900), use('h.quiet', 10, 100)]), use('g', 30, 300)],
      800,
      { 'h.noisy': 44 },
    ],
    [
      'a host of many names, and nobody else',
      [
        ofParts(
          'h',
          many.map((each) => ({ ...each, bytes: 1000 })),
        ),
        use('g', 30, 300),
      ],
      600,
      { h: 3 },
    ],
    [
      'a tenant as a whole, where its containers have a message each',
      [ofParts('h', [use('h.a', 1, 100), use('h.b', 1, 100), use('h.c', 1, 100), use('h.d', 1, 100)])],
      200,
      { h: 2 },
    ],
    [
      'a host that writes in the name of another’s tenant: its own part of it',
      [ofParts('h', [use('h.victim', 100, 1000)]), ofParts('g', [use('g.victim', 30, 300)])],
      600,
      { 'h.victim': 30 },
    ],
  ];
  for (const [name, uses, target, expected] of cases) {
    const cuts = cutsOf(uses, target, mostCuts);
    t.same(Object.fromEntries(cuts.map((cut) => [cut.use.filter, keptBy(cut)])), expected, name);
  }
});

t.test('of 2,000 streams', async (t) => {
  for (let seed = 0; seed < 2000; seed++) {
    const random = createRandom(seed);
    const leaf = (filter: string): Use => {
      const messages = 1 + random.below(10_000);
      return use(filter, messages, messages * (50 + random.below(60_000)));
    };
    const uses = Array.from({ length: 1 + random.below(8) }, (_, host) =>
      ofParts(
        `h${host}`,
        Array.from({ length: 1 + random.below(6) }, (_, tenant) => leaf(`h${host}.t${tenant}`)),
      ),
    );
    const bytes = uses.reduce((sum, one) => sum + one.bytes, 0);
    const target = 1 + random.below(Math.ceil(bytes * 1.2));
    const cuts = cutsOf(uses, target, mostCuts);
    const kept = new Map(cuts.map((cut) => [cut.use.filter, keptBy(cut)]));
    let after = 0;
    let spare = 0;
    for (const host of uses) {
      const isFair = host.bytes <= target / uses.length;
      const ofHost = kept.get(host.filter) ?? host.messages;
      if (isFair && ofHost < host.messages) return t.fail(`seed ${seed}: a host within its fair share is cut`);
      for (const one of host.parts) {
        const size = one.bytes / one.messages;
        const keep = kept.get(one.filter) ?? one.messages;
        if (keep < 1 || keep > one.messages) return t.fail(`seed ${seed}: ${one.filter} keeps ${keep}`);
        if (isFair && kept.has(one.filter)) return t.fail(`seed ${seed}: a host within its fair share is cut`);
        if (one.bytes <= target / uses.length / host.parts.length && kept.has(one.filter)) {
          return t.fail(`seed ${seed}: a tenant within its fair share of its host is cut`);
        }
        after += (keep * size * ofHost) / host.messages;
        spare += size;
      }
    }
    // Each keeps one message at least, and whole ones.
    if (after > target + spare) return t.fail(`seed ${seed}: ${after} bytes are left, not ${target}`);
    if (bytes > target && after < target - spare) return t.fail(`seed ${seed}: more is removed than needed`);
  }
  t.pass('they fit, and nobody within a fair share is cut');
});

t.test('subjects are counted by host and tenant, whatever a host puts into their names', async (t) => {
  const subjects = {
    'host.h1.log.acme.c1': 1,
    'host.h1.log.acme.c2': 2,
    'host.h1.log.*.c1': 4,
    'host.h1.log.>': 8,
    'host.h1.log.a":1,"host.h2.log.acme.c1': 16,
    'host.h1.log.a\\.c1': 32,
    'host.h1.log.short': 64,
    'host.h1.log.acme.c1.more': 128,
    'host.h1.log.acme.>': 256,
    'host.h2.log.acme.c1': 512,
    'event.acme.c1': 1024,
  };
  const state = { messages: 99, subjects, consumers: 98 };
  const text = JSON.stringify({ total: 10, config: { subjects: ['host.*.log.>'] }, state, total_more: 97 });
  const read = [...subjectsOfPage(text)];
  t.same(Object.fromEntries(read), subjects);
  const counts: Counts = new Map();
  for (const [subject, messages] of read) addTo(counts, subject, messages);
  const plain = [...counts].map(([host, { tenants, nameless }]) => [host, Object.fromEntries(tenants), nameless]);
  t.same(plain, [
    ['h1', { acme: 3 }, 4 + 8 + 16 + 32 + 64 + 128 + 256],
    ['h2', { acme: 512 }, 0],
    ['', { acme: 1024 }, 0],
  ]);
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

/**
 * The quiet tenant writes a message a round; the noisy one, in all rounds, many times the size of
 * the stream.
 */
async function write(ground: Ground, kind: Kind, afterRound: () => Promise<void>): Promise<Map<string, number[]>> {
  const js = jetstream(ground.nc);
  const written = new Map<string, number[]>();
  for (let round = 0; round < quietMessages; round++) {
    await js.publish(kind.subjectOf('quiet', 1), `small ${round}`);
    // Less than what is free above the share at which the keeper acts.
    for (let index = 0; index < 40; index++) {
      const subject = kind.subjectOf('noisy', index % 3);
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
    onTrimmed: (_stream, _of, messages) => void (trimmed += messages),
    random: Math.random,
  });
  t.teardown(() => budgets.stop());
  await budgets.look();
  return { trimmed, failures };
}

/**
 * As a server answers that lists so many other subjects before its own; it puts no more into one
 * answer.
 */
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

t.test('more subjects than one answer of the server lists', async (t) => {
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
