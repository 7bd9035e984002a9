/** What goes into a message, and the queue that it comes from. */
import t from 'tap';
import { decodeAsk } from '../../../lib/rpc/decode.ts';
import { newItem, settle, type Item } from '../../../lib/rpc/item.ts';
import { gather, ItemQueue } from '../../../lib/rpc/lane.ts';
import { limits } from '../../../schemas/limits.ts';
import { linesOf } from '../../../schemas/wire/codec.ts';
import { readOf, writeOf } from './support.ts';

const queueOf = (...items: readonly Item[]): ItemQueue => {
  const queue = new ItemQueue();
  for (const item of items) queue.push(item);
  return queue;
};
const itemOf = (id: string, deadlineMs = 1000): Item => newItem(readOf(id), deadlineMs, () => {});

t.test('expired and settled items are left out; the others say how long they may take', (t) => {
  const told: string[] = [];
  const expired = newItem(readOf('a'), 100, ({ code }) => told.push(code));
  const settled = newItem(readOf('b'), 1000, ({ code }) => told.push(code));
  const good = newItem(writeOf('c'), 1000, ({ code }) => told.push(code));
  settle(settled, { code: 'ok', body: '' });
  const queue = queueOf(expired, settled, good);
  const batch = gather(queue, 200);
  t.same(batch?.items, [good]);
  t.match(linesOf(batch?.payload ?? '').map(decodeAsk), [{ id: 'c', budgetMs: 800 }]);
  t.same(told, ['ok', 'unavailable']);
  t.equal(queue.length, 0);
  t.equal(gather(queue, 200), undefined);
  t.end();
});

t.test('a message ends at its bounds, and the rest stays in order', (t) => {
  const many = Array.from({ length: limits.batchItems + 1 }, (_, at) => itemOf(String(at)));
  const queue = queueOf(...many);
  t.equal(gather(queue, 0)?.items.length, limits.batchItems);
  t.same(gather(queue, 0)?.items, many.slice(-1));
  const large = ['a', 'b'].map((id) => newItem({ ...readOf(id), rid: 'x'.repeat(limits.batchBytes) }, 1000, () => {}));
  const oversized = queueOf(...large);
  t.same(gather(oversized, 0)?.items, large.slice(0, 1), 'one that is over the bound goes alone');
  t.same(gather(oversized, 0)?.items, large.slice(1));
  t.end();
});

t.test('a long queue drops from its head, takes back and takes out', (t) => {
  const items = Array.from({ length: 5000 }, (_, at) => itemOf(String(at)));
  const queue = queueOf(...items);
  queue.drop(4000);
  const again = itemOf('again');
  queue.putBack([again]);
  t.equal(queue.length, 1001);
  t.same([...queue].slice(0, 2), [again, items[4000]]);
  t.same(
    queue.takeOut((item) => item === items[4500]),
    [items[4500]],
  );
  t.equal(queue.length, 1000);
  queue.drop(9999);
  t.same([queue.length, [...queue]], [0, []]);
  t.end();
});
