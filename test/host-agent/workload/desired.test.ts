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
} from '../../../host-agent/workload/desired.ts';
import type { SyncAnswer } from '../../../schemas/wire/host.ts';
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
