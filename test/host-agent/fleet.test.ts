import t from 'tap';
import { accept, Assembly, emptyDesired, type DesiredSet } from '../../host-agent/desired.ts';
import { createFleet, type Fleet, type FleetInput } from '../../host-agent/fleet.ts';
import { noOrphans } from '../../host-agent/orphans.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import type { DesiredContainer } from '../../schemas/messages.ts';
import { container, nowMs } from './support/decisions.ts';

const ids = (...names: string[]): Set<ContainerId> => new Set(names.map((name) => name as ContainerId));
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
  present: ids(),
  orphanMemory: { ...noOrphans, word: 0 },
  leave: { word: 0, isDraining: false },
  isIsolated: false,
  isSettled: true,
  nowMs,
  ...changes,
});
const fleetOf = (desired: DesiredSet): Fleet => {
  const fleet = createFleet();
  fleet.setDesired(desired);
  return fleet;
};
const wantOf = (fleet: Fleet, name: string): string => fleet.wanted(name as ContainerId).want;

t.test('absent from a confirmed set → an orphan; known → as desired', (t) => {
  const fleet = fleetOf(answered([one('a'), one('b', { desired: 'stopped' })]));
  fleet.judge(input({ present: ids('a', 'x') }));
  t.equal(wantOf(fleet, 'a'), 'running');
  t.equal(wantOf(fleet, 'b'), 'stopped');
  t.equal(wantOf(fleet, 'x'), 'nothing');
  t.end();
});

for (const [name, desired, changes] of [
  ['before anything is known', emptyDesired('c1'), {}],
  ['from disk alone, though it is complete', { ...answered([]), heard: new Set<number>() }, {}],
  ['with one owner silent', { ...answered([]), heard: new Set([0]) }, {}],
  ['while answers are under way', answered([]), { isSettled: false }],
  ['before the engine was looked at', answered([]), { present: undefined }],
] as const) {
  t.test(`${name} → nothing is an orphan`, (t) => {
    const fleet = fleetOf(desired);
    fleet.judge(input({ present: ids('x'), ...changes }));
    t.equal(wantOf(fleet, 'x'), 'untouched');
    t.equal(fleet.orphansHeld(), 0);
    t.end();
  });
}

t.test('what an earlier life approved is not acted on before the set is confirmed anew', (t) => {
  const fleet = fleetOf({ ...answered([]), heard: new Set<number>() });
  fleet.judge(input({ present: ids('x'), orphanMemory: { ...noOrphans, approved: ids('x') }, isSettled: false }));
  t.equal(wantOf(fleet, 'x'), 'untouched');
  t.end();
});

t.test('a damaged record’s container is left alone', (t) => {
  const fleet = fleetOf(answered([], ['d' as ContainerId]));
  fleet.judge(input({ present: ids('d') }));
  t.equal(wantOf(fleet, 'd'), 'untouched');
  t.equal(fleet.knows('d' as ContainerId), true);
  t.end();
});

t.test('too many orphans are held, and are left alone', (t) => {
  const fleet = fleetOf(answered([]));
  fleet.judge(input({ present: ids('1', '2', '3', '4', '5', '6') }));
  t.equal(fleet.orphansHeld(), 6);
  t.equal(wantOf(fleet, '1'), 'untouched');
  const { changed } = fleet.judge(
    input({ present: ids('1', '2', '3', '4', '5', '6'), leave: { word: 1, isDraining: false } }),
  );
  t.equal(changed.length, 6);
  t.equal(wantOf(fleet, '1'), 'nothing');
  t.end();
});

t.test('many orphans of a host that is being emptied go', (t) => {
  const fleet = fleetOf(answered([]));
  const leave = { word: 0, isDraining: true };
  fleet.judge(input({ present: ids('1', '2', '3', '4', '5', '6'), leave }));
  t.equal(fleet.orphansHeld(), 0);
  t.equal(wantOf(fleet, '1'), 'nothing');
  t.end();
});

t.test('an orphan that is desired again is no orphan', (t) => {
  const fleet = fleetOf(answered([]));
  const { orphanMemory } = fleet.judge(input({ present: ids('a') }));
  t.equal(wantOf(fleet, 'a'), 'nothing');
  fleet.setDesired(answered([one('a')]));
  t.equal(wantOf(fleet, 'a'), 'running');
  fleet.judge(input({ present: ids('a'), orphanMemory }));
  t.equal(wantOf(fleet, 'a'), 'running');
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
