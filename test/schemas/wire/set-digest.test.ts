import t from 'tap';
import type { ContainerId } from '../../../schemas/ids.ts';
import { basisIn, basisOf, digestOf, type Versioned } from '../../../schemas/wire/set-digest.ts';

const one = (id: string, generation = 1, placement = 1, role: Partial<Versioned> = {}): Versioned => ({
  id: id as ContainerId,
  generation,
  placement,
  desired: 'running',
  ...role,
});
const ids = (...names: string[]): ContainerId[] => names as ContainerId[];
const basis = basisOf(7);

t.test('equal sets have one digest, in any order', (t) => {
  const digest = digestOf(basis, [one('a'), one('b')], ids('x', 'y'));
  t.equal(digestOf(basis, [one('b'), one('a')], ids('y', 'x')), digest);
  t.equal(basisIn(digest), basis);
  t.end();
});

t.test('sets that differ have another', (t) => {
  const sets: [string, string][] = [
    ['empty', digestOf(basis, [], [])],
    ['one container', digestOf(basis, [one('a')], [])],
    ['another', digestOf(basis, [one('b')], [])],
    ['a later generation', digestOf(basis, [one('a', 2)], [])],
    ['a later placement', digestOf(basis, [one('a', 1, 2)], [])],
    ['to be stopped', digestOf(basis, [one('a', 1, 1, { desired: 'stopped' })], [])],
    ['to be prepared', digestOf(basis, [one('a', 1, 1, { desired: 'stopped', prepare: true })], [])],
    ['to be updated', digestOf(basis, [one('a', 1, 1, { update: { since: 1 } })], [])],
    ['both', digestOf(basis, [one('a'), one('b')], [])],
    ['a generation changed for another', digestOf(basis, [one('a', 2), one('b', 1)], [])],
    ['the other way round', digestOf(basis, [one('a', 1), one('b', 2)], [])],
    ['twice the same', digestOf(basis, [one('a'), one('a')], [])],
    ['a damaged one', digestOf(basis, [], ids('a'))],
    ['after a restore', digestOf(basisOf(8), [one('a')], [])],
  ];
  t.equal(new Set(sets.map(([, digest]) => digest)).size, sets.length);
  t.end();
});

t.test('releases agree on the sums', (t) => {
  const id = '0190a000-0000-7000-8000-000000000001' as ContainerId;
  t.equal(digestOf('1.0', [{ id, generation: 3, placement: 2, desired: 'running' }], [id]), '1.0.2.a2728eac.1cd32fdb');
  t.end();
});
