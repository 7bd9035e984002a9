import t from 'tap';
import { admit } from '../../../host-agent/workload/admission.ts';
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
