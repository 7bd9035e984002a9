/** Cuts of a shared stream: their subjects and amounts. */
import t from 'tap';
import { addTo, type Counts } from '../../../actors/retention/budgets-count.ts';
import { subjectsOfPage } from '../../../lib/nats/stream-subjects.ts';
import { cutsOf, keptBy, type Use } from '../../../actors/retention/budgets-decide.ts';
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

t.test('the subjects that are cut', async (t) => {
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
