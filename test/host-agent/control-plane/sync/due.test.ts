import t from 'tap';
import { alsoDue, dueAfter, isDue, nothingDue, type Due } from '../../../../host-agent/control-plane/sync/due.ts';
import type { SyncResult } from '../../../../host-agent/control-plane/sync/sync.ts';

const due = (...partitions: number[]): Due => new Set(partitions);
const complete: SyncResult = { kind: 'complete', due: [] };
const silent: SyncResult = { kind: 'silent' };

for (const [name, before, asked, result, expected] of [
  ['complete: nothing is left', nothingDue, 'all', complete, due()],
  ['complete: a doorbell during the sync stays', due(3), due(1), complete, due(3)],
  ['complete: strangers that the ask did not name', due(3), due(1), { kind: 'complete', due: [1] }, due(3, 1)],
  ['partial: silent partitions stay due', nothingDue, 'all', { kind: 'partial', missing: [2, 5] }, due(2, 5)],
  ['silent: the asked partitions stay due, and no others', nothingDue, due(2), silent, due(2)],
  ['silent: all were asked', due(2), 'all', silent, 'all'],
  ['silent: all became due meanwhile', 'all', due(2), silent, 'all'],
  ['refused: everything', due(1), due(2), { kind: 'refused', why: 'fenced' }, 'all'],
] as const satisfies readonly (readonly [string, Due, Due, SyncResult, Due])[]) {
  t.test(`${name}`, (t) => {
    t.same(dueAfter(before, asked, result), expected);
    t.end();
  });
}

t.test('all covers every partition', (t) => {
  t.equal(alsoDue('all', [1]), 'all');
  t.equal(alsoDue(due(1), 'all'), 'all');
  t.same(alsoDue(due(1), [2]), due(1, 2));
  t.same([isDue('all'), isDue(due(1)), isDue(nothingDue)], [true, true, false]);
  t.end();
});
