import t from 'tap';
import { accept, Assembly, emptyDesired, type DesiredSet } from '../../../host-agent/workload/desired.ts';
import { createWorkload, type Workload, type WorkloadInput } from '../../../host-agent/workload/workload.ts';
import { noOrphans } from '../../../host-agent/workload/orphans.ts';
import type { ContainerId, TenantId } from '../../../schemas/ids.ts';
import type { DesiredContainer, Stranger } from '../../../schemas/wire/host.ts';
import { container, syncAnswer } from '../support/decisions.ts';

const ids = (...names: string[]): Set<ContainerId> => new Set(names.map((name) => name as ContainerId));
const tenant = 'acme' as TenantId;
const present = (...names: string[]): WorkloadInput['present'] =>
  new Map(names.map((name) => [name as ContainerId, { tenant, placement: 1 }]));
const stranger = (name: string, placement = 1): Stranger => ({ tenant, id: name as ContainerId, placement });
const one = (name: string, changes: Partial<DesiredContainer> = {}) =>
  container({ id: name as ContainerId, ...changes });

/** Both partitions of a cluster of two, as their owners answered them. */
function answered(containers: DesiredContainer[], hold: ContainerId[] = []): DesiredSet {
  let desired = emptyDesired('c1');
  for (const partition of [0, 1]) {
    const first = partition === 0;
    const of = first ? { containers, hold } : {};
    const answer = new Assembly().add(syncAnswer({ partition, ...of }));
    if (answer !== undefined) desired = accept(desired, 2, answer, new Map());
  }
  return desired;
}

const input = (changes: Partial<WorkloadInput> = {}): WorkloadInput => ({
  capacity: { cpu_millis: 1000, mem_bytes: 1024 ** 3, containers: 10 },
  present: present(),
  touched: undefined,
  orphanState: { ...noOrphans, word: 0 },
  orphanWord: 0,
  isIsolated: false,
  isSettled: true,
  ...changes,
});
const workloadOf = (desired: DesiredSet): Workload => {
  const workload = createWorkload();
  workload.setDesired(desired);
  return workload;
};
const wantOf = (workload: Workload, name: string): string => workload.wanted(name as ContainerId).want;

t.test('a known container is as desired; an unknown one is untouched until its owner gives it away', (t) => {
  const workload = workloadOf(answered([one('a'), one('b', { desired: 'stopped' })]));
  workload.judge(input({ present: present('a', 'x') }));
  t.same(workload.unjudged(), [stranger('x')]);
  t.equal(wantOf(workload, 'a'), 'running');
  t.equal(wantOf(workload, 'b'), 'stopped');
  t.equal(wantOf(workload, 'x'), 'untouched');
  t.equal(workload.orphansHeld(), 0, 'its owner has given no verdict');
  workload.hearVerdicts([stranger('x')], [stranger('x')]);
  const { changed } = workload.judge(input({ present: present('a', 'x') }));
  t.same(changed, ['x']);
  t.equal(wantOf(workload, 'x'), 'nothing');
  t.equal(workload.orphansHeld(), 0);
  t.same(workload.unjudged(), []);
  t.end();
});

t.test('a container that its owner does not know is held until an operator approves', (t) => {
  const workload = workloadOf(answered([]));
  const state = workload.judge(input({ present: present('x') })).orphanState;
  workload.hearVerdicts([stranger('x')], []);
  const held = workload.judge(input({ present: present('x'), orphanState: state }));
  t.equal(workload.orphansHeld(), 1);
  t.equal(wantOf(workload, 'x'), 'untouched');
  const { changed } = workload.judge(input({ present: present('x'), orphanState: held.orphanState, orphanWord: 1 }));
  t.same(changed, ['x']);
  t.equal(wantOf(workload, 'x'), 'nothing');
  t.end();
});

t.test('a container that its owner gives away goes, though other owners are silent', (t) => {
  const workload = workloadOf({ ...answered([]), heard: new Set([0]) });
  workload.hearVerdicts([stranger('x')], [stranger('x')]);
  workload.judge(input({ present: present('x'), isSettled: false }));
  t.equal(wantOf(workload, 'x'), 'nothing');
  t.end();
});

for (const [name, desired, changes] of [
  ['from disk alone, though it is complete', { ...answered([]), heard: new Set<number>() }, {}],
  ['with one owner silent', { ...answered([]), heard: new Set([0]) }, {}],
  ['while answers are under way', answered([]), { isSettled: false }],
] as const) {
  t.test(`${name}: an operator’s approval has no effect yet`, (t) => {
    const workload = workloadOf(desired);
    workload.hearVerdicts([stranger('x')], []);
    workload.judge(input({ present: present('x'), orphanWord: 1, ...changes }));
    t.equal(wantOf(workload, 'x'), 'untouched');
    t.end();
  });
}

t.test('an approval from before a restart has no effect until owners confirm the set', (t) => {
  const workload = workloadOf({ ...answered([]), heard: new Set<number>() });
  const orphanState = { ...noOrphans, approved: ids('x') };
  workload.judge(input({ present: present('x'), orphanState, isSettled: false }));
  t.equal(wantOf(workload, 'x'), 'untouched');
  t.end();
});

t.test('a verdict covers the named placement; a container made under a later one stays', (t) => {
  const workload = workloadOf(answered([]));
  workload.judge(input({ present: present('x') }));
  workload.hearVerdicts([stranger('x')], [stranger('x')]);
  const later = new Map([['x' as ContainerId, { tenant, placement: 7 }]]);
  workload.judge(input({ present: later }));
  t.equal(wantOf(workload, 'x'), 'untouched');
  t.same(workload.unjudged(), [stranger('x', 7)], 'the agent asks about it again');
  t.end();
});

t.test('after a container moves away and back, the earlier verdict does not count', (t) => {
  const workload = workloadOf(answered([]));
  workload.judge(input({ present: present('x') }));
  workload.hearVerdicts([stranger('x')], [stranger('x')]);
  workload.setDesired(answered([one('x')]));
  workload.hearVerdicts([stranger('x')], [stranger('x')]);
  workload.judge(input({ present: present('x') }));
  t.equal(wantOf(workload, 'x'), 'running');
  workload.setDesired(answered([]));
  workload.judge(input({ present: present('x') }));
  t.equal(wantOf(workload, 'x'), 'untouched', 'nor after it has left again');
  t.end();
});

t.test('an approval ends when the container is known again', (t) => {
  const workload = workloadOf(answered([one('x')]));
  const { orphanState } = workload.judge(
    input({ present: present('x'), orphanState: { approved: ids('x'), word: 0 }, isSettled: false }),
  );
  t.equal(orphanState.approved.size, 0);
  t.end();
});

t.test('the container of a damaged record is untouched', (t) => {
  const workload = workloadOf(answered([], ['d' as ContainerId]));
  workload.judge(input({ present: present('d') }));
  t.same(workload.strangers(), []);
  t.equal(wantOf(workload, 'd'), 'untouched');
  t.equal(workload.knows('d' as ContainerId), true);
  t.end();
});

t.test('strangers without a verdict come first, then those with the oldest verdict', (t) => {
  const workload = workloadOf(answered([]));
  workload.judge(input({ present: present('a', 'b', 'c') }));
  workload.hearVerdicts([stranger('b'), stranger('a')], []);
  t.same(
    workload.strangers().map(({ id }) => id),
    ['c', 'b', 'a'],
  );
  workload.hearVerdicts([stranger('b'), stranger('c')], []);
  t.same(
    workload.strangers().map(({ id }) => id),
    ['a', 'b', 'c'],
  );
  t.end();
});

t.test('on an isolated host, containers that should run stop, and the rest stays', (t) => {
  const workload = workloadOf(answered([one('a'), one('b', { desired: 'removed' })]));
  workload.judge(input());
  const { changed } = workload.judge(input({ isIsolated: true }));
  t.same([wantOf(workload, 'a'), wantOf(workload, 'b')], ['stopped', 'removed']);
  t.same(changed.sort(), ['a', 'b']);
  workload.judge(input());
  t.equal(wantOf(workload, 'a'), 'running');
  t.end();
});

t.test('a container that another host still runs is prepared, and takes room', (t) => {
  const workload = workloadOf(answered([one('a', { desired: 'stopped', prepare: true }), one('b', { prepare: true })]));
  workload.judge(input());
  t.same([wantOf(workload, 'a'), wantOf(workload, 'b')], ['prepared', 'running']);
  t.equal(workload.used().containers, 2);
  t.end();
});

t.test('an admitted container keeps its place against one placed earlier that comes later', (t) => {
  const workload = workloadOf(answered([one('b', { placement: 2, cpu_millis: 800 })]));
  workload.judge(input());
  workload.setDesired(answered([one('b', { placement: 2, cpu_millis: 800 }), one('a', { cpu_millis: 800 })]));
  workload.judge(input());
  t.match(workload.wanted('b' as ContainerId), { admitted: true });
  t.match(workload.wanted('a' as ContainerId), { admitted: false });
  t.end();
});

t.test('only changed containers get a look', (t) => {
  const workload = workloadOf(answered([one('a'), one('b')]));
  t.same(workload.setDesired(answered([one('a'), one('b', { generation: 9 }), one('c')])).sort(), ['b', 'c']);
  t.same(workload.setDesired(answered([one('a')])).sort(), ['b', 'c']);
  t.same(workload.setDesired(answered([], ['a' as ContainerId])), ['a']);
  t.end();
});

t.test('the version before an update has its own secrets, or none', (t) => {
  const secrets = { env: { A: { name: 'a', version: 2 } }, files: {} };
  const { tenant: _, id: __, generation, placement, desired, name, ...version } = one('a');
  const updated = one('a', { secrets, update: { since: 4, previous: version } });
  const workload = workloadOf(answered([updated]));
  const wanted = workload.wanted('a' as ContainerId);
  if (!('container' in wanted)) throw new Error('not wanted');
  t.same(wanted.container.secrets, secrets);
  t.equal(wanted.update?.previous.container.secrets, undefined);
  t.not(wanted.update?.previous.spec, wanted.spec);
  t.same([generation, placement, desired, name], [3, 1, 'running', 'web']);
  t.end();
});
