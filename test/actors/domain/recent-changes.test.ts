import t from 'tap';
import { RecentChanges } from '../../../actors/domain/recent-changes.ts';
import type { ContainerId, HostKey } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { h1, h2 } from '../support/records.ts';

const id = (number: number): ContainerId => `c${number}` as ContainerId;

t.test('the containers of a host that changed after a revision, each once', (t) => {
  const changes = new RecentChanges<HostKey>(100, limits.syncChanges);
  t.equal(changes.add(h1, id(1)), 101);
  t.equal(changes.add(h2, id(2)), 102);
  t.equal(changes.add(h1, id(3)), 103);
  t.equal(changes.add(h1, id(1)), 104);
  t.same([...(changes.since(h1, 100) ?? [])].sort(), [id(1), id(3)]);
  t.same([...(changes.since(h1, 101) ?? [])].sort(), [id(1), id(3)]);
  t.same([...(changes.since(h1, 103) ?? [])], [id(1)]);
  t.same([...(changes.since(h1, 104) ?? [])], []);
  t.same([...(changes.since(h2, 100) ?? [])], [id(2)]);
  t.end();
});

t.test('nothing is known of revisions before the load, forgotten ones, and ones that are not there yet', (t) => {
  const changes = new RecentChanges<HostKey>(100, limits.syncChanges);
  t.same([changes.since(h1, 99), changes.since(h1, 101)], [undefined, undefined]);
  for (let number = 1; number <= limits.syncChanges; number++) changes.add(h1, id(number));
  t.equal(changes.since(h1, 100)?.size, limits.syncChanges, 'as many as are kept');
  changes.add(h2, id(0));
  t.equal(changes.since(h1, 100), undefined);
  t.equal(changes.since(h1, 101)?.size, limits.syncChanges - 1);
  t.end();
});
