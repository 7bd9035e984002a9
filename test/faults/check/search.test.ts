/**
 * Compares the search with one through every order, on small histories: right ones, and the same
 * with two answers exchanged.
 */
import t from 'tap';
import { createRandom, type Random } from '../../actors/support/random.ts';
import { isLinearizable } from './exhaustive.ts';
import { generate, type Shape } from './generate.ts';
import type { History } from './history.ts';
import { itemsOf } from './items.ts';
import { search } from './search.ts';

const tiny: Shape = { tenants: 1, clients: 3, operations: 9, unknownOneIn: 5, capContainers: 2, names: 3 };

/** Exchanges the answers of two operations of one kind. */
function exchange(history: History, random: Random): History {
  const { operations } = history;
  const first = random.below(operations.length);
  const kind = operations[first]?.request.kind;
  const others = operations.flatMap(({ request }, index) => (request.kind === kind && index !== first ? [index] : []));
  const second = others[random.below(others.length)];
  const [one, other] = [operations[first], operations[second ?? -1]];
  if (second === undefined || one === undefined || other === undefined) return history;
  if (one.result.kind === 'unknown' || other.result.kind === 'unknown') return history;
  return {
    ...history,
    operations: operations.with(first, { ...one, result: other.result }).with(second, { ...other, result: one.result }),
  };
}

t.test('the search finds an order exactly if there is one', (t) => {
  const counts = { yes: 0, no: 0 };
  for (let seed = 1; seed <= 1500; seed++) {
    const random = createRandom(seed);
    const right = generate(random, tiny);
    for (const history of [right, exchange(right, random)]) {
      const items = itemsOf(history.operations);
      const expected = isLinearizable(items, history);
      const found = search(items, history).kind === 'linearizable';
      counts[expected ? 'yes' : 'no']++;
      if (found !== expected)
        t.fail(`seed ${seed}: ${found}, not ${expected}\n${JSON.stringify(history.operations, null, 1)}`);
    }
  }
  t.comment(`${counts.yes} with an order, ${counts.no} without`);
  t.ok(counts.no > 100);
  t.end();
});
