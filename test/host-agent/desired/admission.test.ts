import fc from 'fast-check';
import t from 'tap';
import { admit, Admissions } from '../../../host-agent/desired/admission.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import type { DesiredContainer } from '../../../schemas/wire/host.ts';
import { container } from '../support/decisions.ts';

const capacity = { cpu_millis: 1000, mem_bytes: 1000, containers: 3 };
const one = (name: string, changes: Partial<DesiredContainer> = {}): DesiredContainer =>
  container({ id: name as ContainerId, cpu_millis: 400, mem_bytes: 100, ...changes });
const admitted = (containers: DesiredContainer[], present: string[] = []): string[] =>
  [...admit(containers, (id) => present.includes(id), capacity).admitted].sort();

t.test('containers that were placed first are admitted first', (t) => {
  const containers = [one('c', { placement: 3 }), one('a', { placement: 1 }), one('b', { placement: 2 })];
  t.same(admitted(containers), ['a', 'b']);
  t.end();
});

t.test('a present container keeps its place, even beyond the capacity', (t) => {
  const containers = [one('a', { placement: 1 }), one('b', { placement: 2 }), one('c', { placement: 3 })];
  t.same(admitted(containers, ['b', 'c']), ['b', 'c']);
  t.same(admitted(containers, ['a', 'b', 'c']), ['a', 'b', 'c']);
  t.end();
});

for (const [name, changes] of [
  ['cpu', { cpu_millis: 601 }],
  ['memory', { mem_bytes: 901 }],
] as const) {
  t.test(`too much ${name} for what is left → refused, and the next may fit`, (t) => {
    t.same(admitted([one('a'), one('b', { placement: 2, ...changes }), one('c', { placement: 3 })]), ['a', 'c']);
    t.end();
  });
}

t.test('the host admits no more containers than its limit', (t) => {
  const small = ['a', 'b', 'c', 'd'].map((name) => one(name, { cpu_millis: 1 }));
  t.same(admitted(small), ['a', 'b', 'c']);
  t.end();
});

t.test('a stopped container keeps its place, a removed one only while it is present', (t) => {
  const others = [one('b', { placement: 2 }), one('c', { placement: 3 })];
  t.same(admitted([one('a', { desired: 'stopped' }), ...others]), ['a', 'b']);
  t.same(admitted([one('a', { desired: 'removed' }), ...others]), ['b', 'c']);
  t.same(admitted([one('a', { desired: 'removed' }), ...others], ['a']), ['a', 'b']);
  t.end();
});

t.test('used is the sum of what was admitted', (t) => {
  const { used } = admit([one('a'), one('b'), one('c')], () => false, capacity);
  t.same(used, { cpu_millis: 800, mem_bytes: 200, containers: 2 });
  t.end();
});

type Change =
  | { readonly kind: 'want'; readonly container: DesiredContainer }
  | { readonly kind: 'unwant' | 'come' | 'go'; readonly id: ContainerId }
  | { readonly kind: 'list' }
  | { readonly kind: 'resize'; readonly containers: number };

const name = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const change: fc.Arbitrary<Change> = fc.oneof(
  fc
    .record({
      id: name,
      placement: fc.integer({ min: 1, max: 3 }),
      cpu_millis: fc.constantFrom(100, 400),
      desired: fc.constantFrom('running', 'stopped', 'removed'),
    })
    .map(({ id, ...changes }): Change => ({ kind: 'want', container: one(id, changes) })),
  fc.record({ kind: fc.constantFrom('unwant', 'come', 'go'), id: name.map((id) => id as ContainerId) }),
  fc.constant<Change>({ kind: 'list' }),
  fc.integer({ min: 2, max: 4 }).map((containers): Change => ({ kind: 'resize', containers })),
);

t.test('admissions that are kept are those that the rule gives', (t) => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
      const admissions = new Admissions();
      const wanted = new Map<ContainerId, DesiredContainer>();
      const present = new Set<ContainerId>();
      let room = capacity;
      let expected: ReadonlySet<ContainerId> = new Set();
      for (const each of changes) {
        switch (each.kind) {
          case 'want':
            wanted.set(each.container.id, each.container);
            break;
          case 'unwant':
            wanted.delete(each.id);
            break;
          case 'come':
            present.add(each.id);
            break;
          case 'go':
            present.delete(each.id);
            break;
          case 'resize':
            room = { ...room, containers: each.containers };
            break;
          case 'list':
            break;
        }
        const touched = 'id' in each ? [each.id] : each.kind === 'want' ? [each.container.id] : undefined;
        const fresh = admissions.judge(touched, {
          containers: () => [...wanted.values()],
          get: (id) => wanted.get(id),
          isPresent: (id) => present.has(id),
          capacity: room,
        });
        const before = expected;
        const rule = admit(wanted.values(), (id) => present.has(id) || before.has(id), room);
        expected = rule.admitted;
        t.same(new Set(fresh), new Set([...expected].filter((id) => !before.has(id))));
        t.same(admissions.used(), rule.used);
        for (const id of ['a', 'b', 'c', 'd', 'e'] as ContainerId[]) t.equal(admissions.has(id), expected.has(id), id);
      }
    }),
  );
  t.end();
});
