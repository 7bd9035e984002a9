import t from 'tap';
import { judgeOrphans, noOrphans, type OrphanState, type OwnersVerdict } from '../../../host-agent/desired/orphans.ts';
import type { ContainerId } from '../../../schemas/ids.ts';

const ids = (count: number, from = 0): Set<ContainerId> =>
  new Set(Array.from({ length: count }, (_, index) => `c${from + index}` as ContainerId));
const all = (orphans: ReadonlySet<ContainerId>, verdict: OwnersVerdict) =>
  new Map([...orphans].map((id) => [id, verdict]));
const heard: OrphanState = { ...noOrphans, word: 0 };

for (const count of [1, 5, 6, 21]) {
  t.test(`${count} orphans that the control plane does not know are held`, (t) => {
    const { held, state } = judgeOrphans(heard, ids(count), all(ids(count), 'unknown'), 0);
    t.equal(held.size, count);
    t.equal(state.approved.size, 0);
    t.end();
  });
  t.test(`${count} orphans that their owner gave away: none is held`, (t) => {
    t.equal(judgeOrphans(heard, ids(count), all(ids(count), 'gone'), 0).held.size, 0);
    t.end();
  });
}

t.test('a higher approval releases held orphans, once', (t) => {
  const told = judgeOrphans(heard, ids(10), all(ids(10), 'unknown'), 1);
  t.same([told.state.approved.size, told.held.size], [10, 0]);
  const others = judgeOrphans(told.state, ids(10, 50), all(ids(10, 50), 'unknown'), 1);
  t.equal(others.held.size, 10, 'the same approval does not count twice');
  t.end();
});

t.test('an approval waits until every orphan has a verdict', (t) => {
  const early = judgeOrphans(heard, ids(4), all(ids(2), 'unknown'), 1);
  t.same([early.state.word, early.state.approved.size, early.held.size], [0, 0, 2]);
  const late = judgeOrphans(early.state, ids(4), all(ids(4), 'unknown'), 1);
  t.same([late.state.word, late.state.approved.size], [1, 4]);
  t.end();
});

t.test('approved orphans stay approved until they are gone', (t) => {
  const told = judgeOrphans(heard, ids(10), all(ids(10), 'unknown'), 1);
  const half = new Set([...ids(10)].slice(5));
  const next = judgeOrphans(told.state, half, all(half, 'unknown'), 1);
  t.same([next.held.size, next.state.approved.size], [0, 5]);
  t.end();
});

t.test('the first approval after a start has no effect', (t) => {
  const verdict = judgeOrphans(noOrphans, ids(10), all(ids(10), 'unknown'), 7);
  t.same([verdict.held.size, verdict.state.word], [10, 7]);
  t.end();
});
