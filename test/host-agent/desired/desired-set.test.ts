import t from 'tap';
import {
  accept,
  Assembly,
  containersOf,
  emptyDesired,
  heldIdsOf,
  isComplete,
  isConfirmed,
  isOfVersionHeld,
  refuse,
  type DesiredSet,
  type PartitionAnswer,
} from '../../../host-agent/desired/desired-set.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import type { DesiredContainer, SyncAnswer } from '../../../schemas/wire/host.ts';
import { basisOf, digestOf } from '../../../schemas/wire/set-digest.ts';
import { container, id, syncAnswer } from '../support/decisions.ts';

const whole = (changes: Partial<SyncAnswer> = {}): PartitionAnswer => {
  const assembled = new Assembly().add(syncAnswer(changes));
  if (assembled === undefined) throw new Error('not whole');
  return assembled;
};
const take = (desired: DesiredSet, changes: Partial<SyncAnswer> = {}, held = desired.sets): DesiredSet =>
  accept(desired, 2, whole(changes), held);
const empty = emptyDesired('c1');

t.test('a set is complete when every partition has answered', (t) => {
  const half = take(empty, { partition: 0 });
  t.equal(isComplete(half), false);
  const full = take(half, { partition: 1 });
  t.equal(isComplete(full), true);
  t.equal(isConfirmed(full), true);
  t.end();
});

t.test('a set from disk may be complete; only owners confirm it', (t) => {
  const full = take(take(empty, { partition: 0 }), { partition: 1 });
  const fromDisk = { ...full, heard: new Set<number>() };
  t.equal(isComplete(fromDisk), true);
  t.equal(isConfirmed(fromDisk), false);
  const half = take(fromDisk, { partition: 0, same: true });
  t.equal(isConfirmed(half), false);
  t.equal(isConfirmed(take(half, { partition: 1, same: true })), true);
  t.end();
});

for (const [name, changes, taken] of [
  ['newer revision → taken', { revision: 6 }, true],
  ['newer epoch with a lower revision → taken', { epoch: 3, revision: 1 }, true],
  ['older revision → dropped', { revision: 4 }, false],
  ['older epoch with a higher revision → dropped', { epoch: 1, revision: 9 }, false],
  ['equal → dropped', { revision: 5 }, false],
] as const) {
  t.test(name, (t) => {
    const held = take(empty, { epoch: 2, revision: 5 });
    const next = take(held, { epoch: 2, containers: [container()], ...changes });
    t.equal(containersOf(next).length, taken ? 1 : 0);
    t.end();
  });
}

t.test('"same" refers only to the version that the ask names', (t) => {
  const asked = take(empty, { revision: 1 });
  const since = take(asked, { revision: 2, containers: [container()] });
  t.equal(take(since, { same: true, epoch: 9, revision: 9 }, asked.sets), since, 'a newer set came meanwhile');
  t.match(take(since, { same: true, epoch: 9, revision: 9 }).sets.get(0), { epoch: 9, revision: 9 });
  t.equal(containersOf(take(since, { same: true, epoch: 9, revision: 9 })).length, 1, 'the containers stay');
  t.equal(take(empty, { same: true }), empty, 'of nothing');
  t.end();
});

t.test('changes make the next set from the one that was named', (t) => {
  const [a, b, c] = ['a', 'b', 'c'].map((name) => container({ id: name as ContainerId, name }));
  if (a === undefined || b === undefined || c === undefined) throw new Error('no containers');
  const digest = (...containers: DesiredContainer[]): string => digestOf(basisOf(0), containers, []);
  const held = take(empty, { containers: [a, b], digest: digest(a, b) });
  const newB = { ...b, generation: 9 };
  const changes = { since: [1, 1] as [number, number], revision: 4, containers: [newB, c], removed: [a.id] };
  const next = take(held, { ...changes, digest: digest(newB, c) });
  t.match(next.sets.get(0), { revision: 4, containers: [newB, c], basis: basisOf(0) });
  t.equal(take(next, { ...changes, digest: digest(newB, c) }), next, 'once');
  const other = take(held, { since: [1, 1], revision: 4, containers: [newB], digest: digest(a, newB) });
  t.equal(other.sets.get(0)?.containers[0], held.sets.get(0)?.containers[0], 'what is unchanged stays the same object');

  const wrong = take(held, { ...changes, digest: digest(a, newB, c) });
  t.same([wrong.sets, [...wrong.doubted]], [held.sets, [0]], 'not a set that its owner does not have');
  t.same([...take(wrong, { revision: 4, containers: [c], digest: digest(c) }).doubted], [], 'until it is sent whole');
  const elsewhere = take(held, { ...changes, since: [1, 2], digest: digest(newB, c) });
  t.equal(elsewhere, held, 'changes of a version that is not here are passed over');
  t.equal(take(empty, { ...changes, digest: digest(newB, c) }), empty, 'changes of nothing');
  t.end();
});

t.test('a whole set of the version that is here replaces one that has lost a change', (t) => {
  const a = container();
  const digest = digestOf(basisOf(0), [a], []);
  const whole = take(empty, { containers: [a], digest });
  t.equal(take(whole, { containers: [a], digest }), whole);
  const set = whole.sets.get(0);
  if (set === undefined) throw new Error('no set');
  const lost = { ...whole, sets: new Map([[0, { ...set, containers: [] }]]) };
  t.equal(containersOf(take(lost, { containers: [a], digest })).length, 1);
  t.end();
});

t.test('parts complete an answer in any order, and only parts of one version', (t) => {
  const assembly = new Assembly();
  const second = container({ name: 'second' });
  t.equal(assembly.add(syncAnswer({ part: 1, parts: 2, containers: [second] })), undefined);
  t.equal(assembly.add(syncAnswer({ part: 0, parts: 2, revision: 2 })), undefined, 'another revision');
  t.equal(assembly.add(syncAnswer({ part: 1, parts: 2, containers: [second] })), undefined, 'the same part again');
  const all = assembly.add(syncAnswer({ part: 0, parts: 2, containers: [container()], hold: [id] }));
  t.match(all, { kind: 'set', set: { containers: [{ name: 'web' }, { name: 'second' }], hold: [id] } });
  t.end();
});

t.test('answers of another cluster, or of one created again, are refused', (t) => {
  const held = take(empty);
  t.match(refuse(held, syncAnswer({ cluster: 'c2' })), { kind: 'foreign_cluster' });
  t.match(refuse(held, syncAnswer({ partitions: 4 })), { kind: 'other_partitions' });
  t.match(refuse(held, syncAnswer({ partition: 2 })), { kind: 'other_partitions' });
  t.equal(refuse(held, syncAnswer()), undefined);
  t.end();
});

t.test('damaged records are listed apart', (t) => {
  t.same(heldIdsOf(take(empty, { hold: [id] })), [id]);
  t.end();
});

t.test('a verdict counts only with the version that it came with', (t) => {
  const desired = take(empty, { epoch: 2, revision: 5 });
  for (const same of [true, false]) {
    t.equal(isOfVersionHeld(desired, whole({ same, epoch: 2, revision: 5 })), true);
    t.equal(isOfVersionHeld(desired, whole({ same, epoch: 2, revision: 4 })), false, 'late');
    t.equal(isOfVersionHeld(desired, whole({ same, epoch: 1, revision: 5 })), false, 'the verdict of a former owner');
    t.equal(
      isOfVersionHeld(desired, whole({ same, epoch: 2, revision: 6 })),
      false,
      'the verdict with a set that was dropped',
    );
  }
  t.equal(isOfVersionHeld(empty, whole()), false);
  t.end();
});

t.test('containers that were given away may be in any part of an answer', (t) => {
  const gone = [{ id, placement: 3 }];
  t.same(whole({ same: true, gone }), { kind: 'same', partition: 0, epoch: 1, revision: 1, gone });
  const assembly = new Assembly();
  assembly.add(syncAnswer({ part: 0, parts: 2, gone }));
  t.match(assembly.add(syncAnswer({ part: 1, parts: 2 })), { kind: 'set', gone });
  t.end();
});
