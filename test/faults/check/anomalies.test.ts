/** The checker finds one wrong thing in a history, and names its rule. */
import t from 'tap';
import { createRandom, type Random } from '../../actors/support/random.ts';
import { check, explain, type Rule } from './check.ts';
import { generate, type Shape } from './generate.ts';
import type { History, Operation, Request, Result, Seen, Version } from './history.ts';

const caps: History['caps'] = { containers: 2, cpuMillis: null, memBytes: null };

const first: Version = { tag: '1', cpuMillis: 100, memBytes: 1000 };
const seen = (id: string, more: Partial<Seen> = {}): Seen => ({
  id,
  name: `n-${id}`,
  version: first,
  host: 'h1',
  isRemoving: false,
  desired: null,
  generation: null,
  update: null,
  ...more,
});
const status = (
  id: string,
  desired: NonNullable<Seen['desired']>,
  generation: number,
  update: Seen['update'] = 'none',
): Seen => seen(id, { name: null, version: null, desired, generation, update, isRemoving: desired === 'removed' });

const of = (container: Seen): Result => ({ kind: 'ok', told: { of: 'container', container } });
const list = (...containers: Seen[]): Result => ({ kind: 'ok', told: { of: 'list', containers, isWhole: true } });
const used = (cpuMillis: number): Result => ({
  kind: 'ok',
  told: { of: 'quota', quota: { usage: { containers: 1, cpuMillis, memBytes: 1000 }, caps } },
});
const refused = (code: string): Result => ({ kind: 'refused', code });
const unknown: Result = { kind: 'unknown', why: 'timeout' };

const create = (name: string, idempotencyKey: string | null = null): Request => ({
  kind: 'create',
  name,
  version: first,
  idempotencyKey,
});
const patch = (tag: string, cpuMillis = 100): Request => ({
  kind: 'patch',
  id: 'c1',
  change: { tag, cpuMillis },
  read: null,
});
const tagged = (tag: string): Seen => seen('c1', { version: { ...first, tag } });

/** Operations of one tenant, each a process of its own. */
const story = (...operations: [number, number | null, Request, Result][]): History => ({
  caps,
  goodTags: ['1', 'good'],
  operations: operations.map(([invokedMs, answeredMs, request, result], index): Operation => {
    return { process: `p${index}`, tenant: 't', request, invokedMs, answeredMs, result };
  }),
});

const made: [number, number, Request, Result] = [0, 10, create('n-c1'), of(seen('c1'))];

const table: readonly { readonly what: string; readonly history: History; readonly rules: readonly Rule[] }[] = [
  {
    what: 'a list without a container that was created and acknowledged',
    history: story(made, [20, 30, { kind: 'list' }, list()]),
    rules: ['lost write', 'not linearizable'],
  },
  {
    what: 'a list concurrent with the create may miss it',
    history: story(made, [5, 30, { kind: 'list' }, list()]),
    rules: [],
  },
  {
    what: 'a list that misses what a later one shows',
    history: story(made, [20, 30, { kind: 'list' }, list()], [40, 50, { kind: 'list' }, list(seen('c1'))]),
    rules: ['stale read', 'not linearizable'],
  },
  {
    what: 'a stop that a later get does not show',
    history: story(
      made,
      [20, 30, { kind: 'stop', id: 'c1' }, of(seen('c1'))],
      [40, 50, { kind: 'get', id: 'c1' }, of(status('c1', 'running', 2))],
      [60, 70, { kind: 'get', id: 'c1' }, of(status('c1', 'stopped', 3))],
    ),
    rules: ['stale read', 'not linearizable'],
  },
  {
    what: 'a stop with an unknown outcome may take effect late',
    history: story(
      made,
      [20, 30, { kind: 'stop', id: 'c1' }, unknown],
      [40, 50, { kind: 'get', id: 'c1' }, of(status('c1', 'running', 2))],
      [60, 70, { kind: 'get', id: 'c1' }, of(status('c1', 'stopped', 3))],
    ),
    rules: [],
  },
  {
    what: 'a stop that was done twice',
    history: story(
      made,
      [20, 30, { kind: 'get', id: 'c1' }, of(status('c1', 'running', 2))],
      [40, 50, { kind: 'stop', id: 'c1' }, of(seen('c1'))],
      [60, 70, { kind: 'get', id: 'c1' }, of(status('c1', 'stopped', 4))],
    ),
    rules: ['done twice', 'not linearizable'],
  },
  {
    what: 'two containers for one key',
    history: story([0, 10, create('n-c1', 'k'), of(seen('c1'))], [20, 30, create('n-c2', 'k'), of(seen('c2'))]),
    rules: ['done twice', 'not linearizable'],
  },
  {
    what: 'a container that no create made',
    history: story(made, [20, 30, { kind: 'list' }, list(seen('c9'), seen('c1'))]),
    rules: ['done twice', 'not linearizable'],
  },
  {
    what: 'a create without an answer may have been done',
    history: story([0, null, create('n-c9'), unknown], [20, 30, { kind: 'list' }, list(seen('c9'))]),
    rules: [],
  },
  {
    what: 'more containers than the cap',
    history: story(
      made,
      [20, 30, create('n-c2'), of(seen('c2'))],
      [40, 50, create('n-c3'), of(seen('c3'))],
      [60, 70, { kind: 'list' }, list(seen('c3'), seen('c2'), seen('c1'))],
    ),
    rules: ['cap exceeded', 'not linearizable'],
  },
  {
    what: 'a container that is gone and comes back',
    history: story(
      made,
      [20, 30, { kind: 'delete', id: 'c1' }, of(seen('c1', { isRemoving: true }))],
      [40, 50, { kind: 'get', id: 'c1' }, refused('not_found')],
      [60, 70, { kind: 'get', id: 'c1' }, of(status('c1', 'removed', 3))],
    ),
    rules: ['resurrected', 'not linearizable'],
  },
  {
    what: 'a removed container shows until its host confirms',
    history: story(
      made,
      [20, 30, { kind: 'delete', id: 'c1' }, of(seen('c1', { isRemoving: true }))],
      [40, 50, { kind: 'get', id: 'c1' }, of(status('c1', 'removed', 3))],
      [60, 70, { kind: 'list' }, list()],
    ),
    rules: [],
  },
  {
    what: 'a delete that a gateway repeats after the container is gone',
    history: story(
      made,
      [20, 90, { kind: 'delete', id: 'c1' }, refused('not_found')],
      [30, 40, { kind: 'list' }, list()],
    ),
    rules: [],
  },
  {
    what: 'a container that is gone without a delete',
    history: story(made, [20, 90, { kind: 'start', id: 'c1' }, refused('not_found')]),
    rules: ['lost write', 'not linearizable'],
  },
  {
    what: 'a list that mixes two moments',
    history: story(
      made,
      [20, 30, { kind: 'delete', id: 'c1' }, of(seen('c1', { isRemoving: true }))],
      [40, 50, create('n-c2'), of(seen('c2'))],
      // It shows the container made after the delete, and the other as before the delete.
      [15, 60, { kind: 'list' }, list(seen('c2'), seen('c1'))],
    ),
    rules: ['not linearizable'],
  },
  {
    what: 'two containers with one name',
    history: story(made, [20, 30, create('n-c1'), of(seen('c2', { name: 'n-c1' }))]),
    rules: ['not linearizable'],
  },
  {
    what: 'an update that fails is rolled back under a generation of its own',
    history: story(
      made,
      [20, 30, patch('bad'), of(tagged('bad'))],
      [40, 50, { kind: 'get', id: 'c1' }, of(status('c1', 'running', 3, 'under way'))],
      [60, 70, { kind: 'list' }, list(tagged('bad'))],
      [80, 90, { kind: 'get', id: 'c1' }, of(status('c1', 'running', 4, 'rolled back'))],
      [100, 110, { kind: 'list' }, list(tagged('1'))],
    ),
    rules: [],
  },
  {
    what: 'the second of two updates falls back on the version before both, or on the first',
    history: story(
      made,
      [20, 30, patch('bad'), of(tagged('bad'))],
      [40, 50, patch('worse'), of(tagged('worse'))],
      [60, 70, { kind: 'list' }, list(tagged('1'))],
    ),
    rules: [],
  },
  {
    what: 'an update that nobody rolled back and that is gone',
    history: story(
      made,
      [20, 30, patch('bad'), of(tagged('bad'))],
      [40, 50, { kind: 'list' }, list(tagged('1'))],
      [60, 70, { kind: 'get', id: 'c1' }, of(status('c1', 'running', 2))],
    ),
    rules: ['not linearizable'],
  },
  {
    what: 'a good version that is rolled back',
    history: story(made, [20, 30, patch('good'), of(tagged('good'))], [40, 50, { kind: 'list' }, list(tagged('1'))]),
    rules: ['not linearizable'],
  },
  {
    what: 'a version that no client asked for',
    history: story(made, [20, 30, patch('bad'), of(tagged('bad'))], [40, 50, { kind: 'list' }, list(tagged('good'))]),
    rules: ['not linearizable'],
  },
  {
    what: 'a version that comes back after its update was done',
    history: story(
      made,
      [20, 30, patch('bad'), of(tagged('bad'))],
      [40, 50, { kind: 'get', id: 'c1' }, of(status('c1', 'running', 3, 'done'))],
      [60, 70, { kind: 'list' }, list(tagged('1'))],
    ),
    rules: ['not linearizable'],
  },
  {
    what: 'an update in the place of a declaration that the client had not read',
    history: story(
      made,
      [20, 30, patch('good'), of(tagged('good'))],
      [
        40,
        50,
        { kind: 'patch', id: 'c1', change: { cpuMillis: 1 }, read: { version: first, desired: 'running' } },
        of(tagged('good')),
      ],
    ),
    rules: ['not linearizable'],
  },
  {
    what: 'a change refused although the client had read what is declared',
    history: story(made, [
      20,
      30,
      { kind: 'patch', id: 'c1', change: { tag: 'good' }, read: { version: first, desired: 'running' } },
      refused('precondition_failed'),
    ]),
    rules: ['not linearizable'],
  },
  {
    what: 'a quota that counts less than either version of an update',
    history: story(made, [20, 30, patch('bad', 300), of(tagged('bad'))], [40, 50, { kind: 'quota' }, used(99)]),
    rules: ['not linearizable'],
  },
  {
    what: 'a quota that counts the larger version of an update',
    history: story(
      made,
      [20, 30, patch('bad', 50), of(tagged('bad'))],
      [40, 50, { kind: 'quota' }, used(100)],
      [60, 70, { kind: 'get', id: 'c1' }, of(status('c1', 'running', 3, 'under way'))],
      [80, 90, { kind: 'quota' }, used(100)],
    ),
    rules: [],
  },
  {
    what: 'a quota that still counts a version whose update is over',
    history: story(
      made,
      [20, 30, patch('bad', 50), of(tagged('bad'))],
      [40, 50, { kind: 'get', id: 'c1' }, of(status('c1', 'running', 3, 'done'))],
      [60, 70, { kind: 'quota' }, used(100)],
    ),
    rules: ['not linearizable'],
  },
  {
    what: 'a create refused for its cap while there is room',
    history: story(made, [20, 30, create('n-c2'), refused('over_quota')]),
    rules: ['not linearizable'],
  },
];

for (const { what, history, rules } of table) {
  t.test(what, (t) => {
    const findings = check(history);
    t.same([...new Set(findings.map(({ rule }) => rule))], rules, findings.map(explain).join('\n'));
    t.end();
  });
}

t.test('a finding names the read, the write that it misses, and the time between', (t) => {
  const [finding] = check(
    story(made, [20, 30, { kind: 'list' }, list()], [40, 50, { kind: 'list' }, list(seen('c1'))]),
  );
  t.ok(finding);
  t.match(finding?.words, /list misses create n-c1, which was acknowledged 10\.0 ms before it/);
  t.equal(finding?.operations.length, 2);
  t.end();
});

const shape: Shape = { tenants: 1, clients: 4, operations: 300, unknownOneIn: 20, capContainers: 5, names: 8 };

/** Harms one random operation that can be harmed this way. */
function spoil(
  history: History,
  random: Random,
  harm: (operation: Operation) => Operation | undefined,
): History | undefined {
  const spoilt = history.operations.flatMap((operation, index) => {
    const changed = harm(operation);
    return changed === undefined ? [] : [{ index, changed }];
  });
  const chosen = spoilt[random.below(spoilt.length)];
  if (chosen === undefined) return undefined;
  return { ...history, operations: history.operations.with(chosen.index, chosen.changed) };
}

const harms: Readonly<Record<string, (operation: Operation) => Operation | undefined>> = {
  'a list lacks its oldest': (operation) =>
    operation.result.kind === 'ok' && operation.result.told.of === 'list' && operation.result.told.containers.length > 2
      ? {
          ...operation,
          result: list(...operation.result.told.containers.slice(0, -1).filter(({ isRemoving }) => !isRemoving)),
        }
      : undefined,
  'a generation is one too high': (operation) =>
    operation.result.kind === 'ok' && operation.result.told.of === 'container' && operation.request.kind === 'get'
      ? {
          ...operation,
          result: of({
            ...operation.result.told.container,
            generation: (operation.result.told.container.generation ?? 0) + 2,
          }),
        }
      : undefined,
  'a get misses a container that exists': (operation) =>
    operation.result.kind === 'ok' &&
    operation.result.told.of === 'container' &&
    operation.request.kind === 'get' &&
    !operation.result.told.container.isRemoving
      ? { ...operation, result: refused('not_found') }
      : undefined,
};

for (const [what, harm] of Object.entries(harms)) {
  t.test(`${what}: the checker finds it in nearly every history`, (t) => {
    const [tried, found] = [60, [] as number[]];
    for (let seed = 1; seed <= tried; seed++) {
      const random = createRandom(seed);
      const spoilt = spoil(generate(random, shape), random, harm);
      if (spoilt !== undefined && check(spoilt).length > 0) found.push(seed);
    }
    // Some harms are excused by an overlapping operation.
    t.ok(found.length >= 0.8 * tried, `${found.length} of ${tried}`);
    t.end();
  });
}
