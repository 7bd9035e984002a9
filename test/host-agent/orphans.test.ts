import t from 'tap';
import { judgeOrphans, noOrphans, type OperatorLeave, type OrphanMemory } from '../../host-agent/orphans.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { nowMs } from './support/decisions.ts';

const ids = (count: number, from = 0): Set<ContainerId> =>
  new Set(Array.from({ length: count }, (_, index) => `c${from + index}` as ContainerId));
const word = (latest: number): OperatorLeave => ({ word: latest, isDraining: false });
const heard: OrphanMemory = { ...noOrphans, word: 0 };

for (const [orphans, present, held] of [
  [1, 1, 0],
  [5, 5, 0],
  [6, 6, 6],
  [6, 29, 6],
  [6, 30, 0],
  [20, 100, 0],
  [21, 100, 21],
] as const) {
  t.test(`${orphans} orphans of ${present} → ${held} held`, (t) => {
    const verdict = judgeOrphans(heard, ids(orphans), present, word(0), nowMs);
    t.equal(verdict.held.size, held);
    t.equal(verdict.memory.approved.size, orphans - held);
    t.end();
  });
}

t.test('many small removals count as one large one', (t) => {
  const first = judgeOrphans(heard, ids(4), 20, word(0), nowMs);
  t.equal(first.held.size, 0);
  const second = judgeOrphans(first.memory, ids(4, 4), 16, word(0), nowMs + 1000);
  t.equal(second.held.size, 4);
  const later = judgeOrphans(second.memory, ids(4, 4), 16, word(0), nowMs + limits.orphanWindowMs);
  t.equal(later.held.size, 0, 'until the first are forgotten');
  t.end();
});

t.test('a higher word lets go what is held, once', (t) => {
  const before = judgeOrphans(heard, ids(10), 10, word(0), nowMs);
  t.equal(before.held.size, 10);
  const told = judgeOrphans(before.memory, ids(10), 10, word(1), nowMs);
  t.equal(told.memory.approved.size, 10);
  t.equal(told.held.size, 0);
  const others = judgeOrphans(told.memory, ids(10, 50), 10, word(1), nowMs);
  t.equal(others.held.size, 10, 'the same word is spent');
  t.end();
});

t.test('a host that is being emptied lets all go, and none of it counts later', (t) => {
  const drained = judgeOrphans(heard, ids(10), 10, { word: 0, isDraining: true }, nowMs);
  t.equal(drained.memory.approved.size, 10);
  const after = judgeOrphans(drained.memory, ids(5, 50), 20, word(0), nowMs + 1);
  t.equal(after.held.size, 0);
  t.end();
});

t.test('what was approved stays approved while it goes', (t) => {
  const told = judgeOrphans({ ...heard, word: 0 }, ids(10), 10, word(1), nowMs);
  const half = new Set([...ids(10)].slice(5));
  const next = judgeOrphans(told.memory, half, 5, word(1), nowMs + 1);
  t.equal(next.held.size, 0);
  t.equal(next.memory.approved.size, 5);
  t.end();
});

t.test('the first word heard is not acted on', (t) => {
  const verdict = judgeOrphans(noOrphans, ids(10), 10, word(7), nowMs);
  t.equal(verdict.held.size, 10);
  t.equal(verdict.memory.word, 7);
  t.end();
});
