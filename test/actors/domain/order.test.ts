/** Lists in their order: what is read of them from any place, and how much of them is looked at. */
import fc from 'fast-check';
import t from 'tap';
import { List, Ordered, isBefore } from '../../../actors/domain/order.ts';
import * as decide from '../../../actors/domain/container/decide.ts';
import { find } from '../../../actors/domain/container/find.ts';
import { encodeCursor } from '../../../schemas/api/cursor.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { acme, container, contextOf, fleetOf, stateOf } from '../support/records.ts';

const idOf = (number: number): ContainerId => String(number).padStart(4, '0') as ContainerId;

t.test('a list is read from any place in both directions, whatever came and went', (t) => {
  const items = fc.array(fc.record({ insertedAtMs: fc.nat(9), id: fc.nat(20).map(idOf), goes: fc.boolean() }));
  fc.assert(
    fc.property(items, fc.nat(10), fc.nat(20), (given, ms, number) => {
      const list = new List();
      for (const { goes, id, insertedAtMs } of given) {
        if (goes) list.delete(id);
        else list.set(id, { id, insertedAtMs: list.get(id)?.insertedAtMs ?? insertedAtMs });
      }
      const place = { insertedAtMs: ms, id: idOf(number) };
      const ordered = [...list.values()].sort((one, other) => (isBefore(one, other) ? -1 : 1));
      t.same([...list.oldestFirst(null)], ordered);
      t.same([...list.newestFirst(null)], ordered.toReversed());
      t.same(
        [...list.oldestFirst(place)],
        ordered.filter((item) => !isBefore(item, place)),
      );
      t.same([...list.newestFirst(place)], ordered.filter((item) => isBefore(item, place)).reverse());
    }),
  );
  t.end();
});

t.test('a huge list costs each change and each read a few comparisons, in whatever order items come', (t) => {
  let comparisons = 0;
  const most = 40;
  const list = new Ordered<number>((one, other) => {
    comparisons++;
    return one - other;
  });
  const costOf = (work: () => void): number => {
    comparisons = 0;
    work();
    return comparisons;
  };
  const count = 20_011;
  // A prime, so each number comes once.
  const shuffled = Array.from({ length: count }, (_, index) => (index * 7919) % count);
  let dearest = 0;
  for (const item of shuffled)
    dearest = Math.max(
      dearest,
      costOf(() => list.add(item)),
    );
  for (const item of shuffled) {
    if (item % 3 === 0)
      dearest = Math.max(
        dearest,
        costOf(() => list.delete(item)),
      );
  }
  t.ok(dearest <= most, `${dearest} comparisons`);
  list.delete(3);
  list.delete(count + 5);
  const left = shuffled.filter((item) => item % 3 !== 0).sort((one, other) => one - other);
  for (const place of [0, 1, 512, 10_000, count - 1, count]) {
    let looks = 0;
    const isBelow = (item: number): boolean => (looks++, item < place);
    const ahead = list.from(isBelow);
    t.equal(
      ahead.next().value,
      left.find((item) => item >= place),
    );
    t.same([...ahead], left.filter((item) => item >= place).slice(1));
    t.ok(looks <= most, `${looks} looks`);
    t.same([...list.before(isBelow)], left.filter((item) => item < place).reverse());
  }
  for (const item of left) list.delete(item);
  t.same([...list.from(() => false), ...list.before(() => true)], []);
  list.add(1);
  t.same([...list.before(() => true)], [1]);
  t.end();
});

t.test('a page of a huge tenant looks at its own containers alone, wherever it begins', (t) => {
  const all = Array.from({ length: 3000 }, (_, index) => container({ insertedAtMs: index + 1 }, `c${index}`));
  const state = stateOf(...all);
  const { containers } = state.tenant(acme);
  let looks = 0;
  const { get } = containers;
  containers.get = (id) => {
    looks++;
    return get.call(containers, id);
  };
  containers.values = () => {
    looks += all.length;
    return Map.prototype.values.call(containers) as ReturnType<typeof containers.values>;
  };
  const asker = { rid: 'r', budgetMs: 1000, tenant: acme } as const;
  const context = contextOf(fleetOf());
  for (const at of [3000, 1500, 20]) {
    looks = 0;
    const before = at === 3000 ? null : (all[at] ?? null);
    const { body } = decide.list(state, { type: 'container.list', limit: 10, before, ...asker }, context).reply;
    const { data, next_cursor } = JSON.parse(body) as { data: { id: string }[]; next_cursor: string };
    t.same(
      data.map(({ id }) => id),
      all
        .slice(at - 10, at)
        .map(({ id }) => id)
        .reverse(),
    );
    t.equal(next_cursor, encodeCursor(all[at - 10]!));
    t.equal(looks, 11, 'of a list');
  }
  for (const at of [0, 1500, 2980]) {
    looks = 0;
    const { insertedAtMs, id } = all[at]!;
    const from = { tenant: acme, insertedAtMs, id };
    const ask = { type: 'container.find', partition: 0, limit: 10, from, only: {}, rid: 'r', budgetMs: 1000 } as const;
    const { data } = JSON.parse(find(state, ask, context).reply.body) as { data: { container: { id: string } }[] };
    t.same(
      data.map(({ container: { id } }) => id),
      all.slice(at, at + 10).map(({ id }) => id),
    );
    t.equal(looks, 11, 'of an operator’s list');
  }
  t.end();
});
