import t from 'tap';
import { accept, Assembly, emptyDesired, type DesiredSet } from '../../../host-agent/workload/desired.ts';
import { createFleet, type Fleet, type FleetInput } from '../../../host-agent/workload/workload.ts';
import { noOrphans } from '../../../host-agent/workload/orphans.ts';
import type { ContainerId, TenantId } from '../../../schemas/ids.ts';
import type { DesiredContainer, Stranger } from '../../../schemas/wire/messages.ts';
import { container } from '../support/decisions.ts';

const ids = (...names: string[]): Set<ContainerId> => new Set(names.map((name) => name as ContainerId));
const tenant = 'acme' as TenantId;
const present = (...names: string[]): FleetInput['present'] =>
  new Map(names.map((name) => [name as ContainerId, { tenant, placement: 1 }]));
const stranger = (name: string, placement = 1): Stranger => ({ tenant, id: name as ContainerId, placement });
const one = (name: string, changes: Partial<DesiredContainer> = {}) =>
  container({ id: name as ContainerId, ...changes });

/** Both partitions of a cluster of two, as their owners answered. */
function answered(containers: DesiredContainer[], hold: ContainerId[] = []): DesiredSet {
  let desired = emptyDesired('c1');
  for (const partition of [0, 1]) {
    const first = partition === 0;
    const answer = new Assembly().add({
      v: 1,
      cluster: 'c1',
      partitions: 2,
      partition,
      epoch: 1,
      revision: 1,
      part: 0,
      parts: 1,
      same: false,
      containers: first ? containers : [],
      hold: first ? hold : [],
      orphan_word: null,
      draining: null,
    });
    if (answer !== undefined) desired = accept(desired, 2, answer, new Map());
  }
  return desired;
}

const input = (changes: Partial<FleetInput> = {}): FleetInput => ({
  capacity: { cpu_millis: 1000, mem_bytes: 1024 ** 3, containers: 10 },
  present: present(),
  orphanMemory: { ...noOrphans, word: 0 },
  orphanWord: 0,
  isIsolated: false,
  isSettled: true,
  ...changes,
});
const fleetOf = (desired: DesiredSet): Fleet => {
  const fleet = createFleet();
  fleet.setDesired(desired);
  return fleet;
};
const wantOf = (fleet: Fleet, name: string): string => fleet.wanted(name as ContainerId).want;

t.test('known → as desired; unknown → untouched until its owner gives it away', (t) => {
  const fleet = fleetOf(answered([one('a'), one('b', { desired: 'stopped' })]));
  fleet.judge(input({ present: present('a', 'x') }));
  t.same(fleet.unjudged(), [stranger('x')]);
  t.equal(wantOf(fleet, 'a'), 'running');
  t.equal(wantOf(fleet, 'b'), 'stopped');
  t.equal(wantOf(fleet, 'x'), 'untouched');
  t.equal(fleet.orphansHeld(), 0, 'nobody has said that it is unknown');
  fleet.hearVerdicts([stranger('x')], [stranger('x')]);
  const { changed } = fleet.judge(input({ present: present('a', 'x') }));
  t.same(changed, ['x']);
  t.equal(wantOf(fleet, 'x'), 'nothing');
  t.equal(fleet.orphansHeld(), 0);
  t.same(fleet.unjudged(), []);
  t.end();
});

t.test('one that its owner does not know → held, until an operator approves', (t) => {
  const fleet = fleetOf(answered([]));
  const memory = fleet.judge(input({ present: present('x') })).orphanMemory;
  fleet.hearVerdicts([stranger('x')], []);
  const held = fleet.judge(input({ present: present('x'), orphanMemory: memory }));
  t.equal(fleet.orphansHeld(), 1);
  t.equal(wantOf(fleet, 'x'), 'untouched');
  const { changed } = fleet.judge(input({ present: present('x'), orphanMemory: held.orphanMemory, orphanWord: 1 }));
  t.same(changed, ['x']);
  t.equal(wantOf(fleet, 'x'), 'nothing');
  t.end();
});

t.test('its owner gives it away → it goes, though other owners are silent', (t) => {
  const fleet = fleetOf({ ...answered([]), heard: new Set([0]) });
  fleet.hearVerdicts([stranger('x')], [stranger('x')]);
  fleet.judge(input({ present: present('x'), isSettled: false }));
  t.equal(wantOf(fleet, 'x'), 'nothing');
  t.end();
});

for (const [name, desired, changes] of [
  ['from disk alone, though it is complete', { ...answered([]), heard: new Set<number>() }, {}],
  ['with one owner silent', { ...answered([]), heard: new Set([0]) }, {}],
  ['while answers are under way', answered([]), { isSettled: false }],
] as const) {
  t.test(`${name} → an operator’s word is not acted on`, (t) => {
    const fleet = fleetOf(desired);
    fleet.hearVerdicts([stranger('x')], []);
    fleet.judge(input({ present: present('x'), orphanWord: 1, ...changes }));
    t.equal(wantOf(fleet, 'x'), 'untouched');
    t.end();
  });
}

t.test('what an earlier life approved is not acted on before the set is confirmed again', (t) => {
  const fleet = fleetOf({ ...answered([]), heard: new Set<number>() });
  const orphanMemory = { ...noOrphans, approved: ids('x') };
  fleet.judge(input({ present: present('x'), orphanMemory, isSettled: false }));
  t.equal(wantOf(fleet, 'x'), 'untouched');
  t.end();
});

t.test('a verdict is of the placement that was named: what was made under a later one stays', (t) => {
  const fleet = fleetOf(answered([]));
  fleet.judge(input({ present: present('x') }));
  fleet.hearVerdicts([stranger('x')], [stranger('x')]);
  const later = new Map([['x' as ContainerId, { tenant, placement: 7 }]]);
  fleet.judge(input({ present: later }));
  t.equal(wantOf(fleet, 'x'), 'untouched');
  t.same(fleet.unjudged(), [stranger('x', 7)], 'it is asked about again');
  t.end();
});

t.test('moved away and back: an earlier verdict says nothing of what is this host’s again', (t) => {
  const fleet = fleetOf(answered([]));
  fleet.judge(input({ present: present('x') }));
  fleet.hearVerdicts([stranger('x')], [stranger('x')]);
  fleet.setDesired(answered([one('x')]));
  fleet.hearVerdicts([stranger('x')], [stranger('x')]);
  fleet.judge(input({ present: present('x') }));
  t.equal(wantOf(fleet, 'x'), 'running');
  fleet.setDesired(answered([]));
  fleet.judge(input({ present: present('x') }));
  t.equal(wantOf(fleet, 'x'), 'untouched', 'and nothing of it when it has left again');
  t.end();
});

t.test('an approval ends where the container is known again', (t) => {
  const fleet = fleetOf(answered([one('x')]));
  const { orphanMemory } = fleet.judge(
    input({ present: present('x'), orphanMemory: { approved: ids('x'), word: 0 }, isSettled: false }),
  );
  t.equal(orphanMemory.approved.size, 0);
  t.end();
});

t.test('a damaged record’s container is left alone', (t) => {
  const fleet = fleetOf(answered([], ['d' as ContainerId]));
  fleet.judge(input({ present: present('d') }));
  t.same(fleet.strangers(), []);
  t.equal(wantOf(fleet, 'd'), 'untouched');
  t.equal(fleet.knows('d' as ContainerId), true);
  t.end();
});

t.test('strangers: those that nothing was said of first, then those that were asked about longest ago', (t) => {
  const fleet = fleetOf(answered([]));
  fleet.judge(input({ present: present('a', 'b', 'c') }));
  fleet.hearVerdicts([stranger('b'), stranger('a')], []);
  t.same(
    fleet.strangers().map(({ id }) => id),
    ['c', 'b', 'a'],
  );
  fleet.hearVerdicts([stranger('b'), stranger('c')], []);
  t.same(
    fleet.strangers().map(({ id }) => id),
    ['a', 'b', 'c'],
  );
  t.end();
});

t.test('isolated: what should run should stop, and the rest is as it was', (t) => {
  const fleet = fleetOf(answered([one('a'), one('b', { desired: 'removed' })]));
  fleet.judge(input());
  const { changed } = fleet.judge(input({ isIsolated: true }));
  t.same([wantOf(fleet, 'a'), wantOf(fleet, 'b')], ['stopped', 'removed']);
  t.same(changed.sort(), ['a', 'b']);
  fleet.judge(input());
  t.equal(wantOf(fleet, 'a'), 'running');
  t.end();
});

t.test('who was admitted keeps its place against who was placed earlier and came later', (t) => {
  const fleet = fleetOf(answered([one('b', { placement: 2, cpu_millis: 800 })]));
  fleet.judge(input());
  fleet.setDesired(answered([one('b', { placement: 2, cpu_millis: 800 }), one('a', { cpu_millis: 800 })]));
  fleet.judge(input());
  t.match(fleet.wanted('b' as ContainerId), { admitted: true });
  t.match(fleet.wanted('a' as ContainerId), { admitted: false });
  t.end();
});

t.test('only what changed is looked at', (t) => {
  const fleet = fleetOf(answered([one('a'), one('b')]));
  t.same(fleet.setDesired(answered([one('a'), one('b', { generation: 9 }), one('c')])).sort(), ['b', 'c']);
  t.same(fleet.setDesired(answered([one('a')])).sort(), ['b', 'c']);
  t.same(fleet.setDesired(answered([], ['a' as ContainerId])).sort(), ['a', 'a']);
  t.end();
});
