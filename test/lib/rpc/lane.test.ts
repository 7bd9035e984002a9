/** The items of a message, and the queue that they come from. */
import t from 'tap';
import { decodeAsk } from '../../../lib/rpc/decode.ts';
import { newItem, settle, type Item } from '../../../lib/rpc/item.ts';
import {
  backlogOf,
  enlist,
  gather,
  ItemQueue,
  laneOf,
  moveTo,
  type Backlog,
  type Lane,
} from '../../../lib/rpc/lane.ts';
import { limits } from '../../../schemas/limits.ts';
import { linesOf } from '../../../schemas/wire/codec.ts';
import { readOf, writeOf } from './support.ts';

const queueOf = (...items: readonly Item[]): ItemQueue => {
  const queue = new ItemQueue();
  for (const item of items) queue.push(item);
  return queue;
};
/** A lane with one backlog. */
const laneWith = (...items: readonly Item[]): Lane => {
  const backlog = backlogOf('read', 0);
  for (const item of items) backlog.queue.push(item);
  enlist(backlog);
  return backlog.lane;
};
const itemOf = (id: string, deadlineMs = 1000): Item => newItem(readOf(id), deadlineMs, () => {});

t.test('expired and settled items are left out; the others say how long they may take', (t) => {
  const told: string[] = [];
  const expired = newItem(readOf('a'), 100, ({ code }) => told.push(code));
  const settled = newItem(readOf('b'), 1000, ({ code }) => told.push(code));
  const good = newItem(writeOf('c'), 1000, ({ code }) => told.push(code));
  settle(settled, { code: 'ok', body: '' });
  const lane = laneWith(expired, settled, good);
  const batch = gather(lane, 200);
  t.same(batch?.items, [good]);
  t.match(linesOf(batch?.payload ?? '').map(decodeAsk), [{ id: 'c', budgetMs: 800 }]);
  t.same(told, ['ok', 'unavailable']);
  t.equal(lane.waiting.size, 0);
  t.equal(gather(lane, 200), undefined);
  t.end();
});

t.test('a message ends at its bounds, and the rest stays in order', (t) => {
  const many = Array.from({ length: limits.batchItems + 1 }, (_, at) => itemOf(String(at)));
  const lane = laneWith(...many);
  t.equal(gather(lane, 0)?.items.length, limits.batchItems);
  t.same(gather(lane, 0)?.items, many.slice(-1));
  const large = ['a', 'b'].map((id) => newItem({ ...readOf(id), rid: 'x'.repeat(limits.batchBytes) }, 1000, () => {}));
  const oversized = laneWith(...large);
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

/** A lane of an owner with as many backlogs, each with some items. */
function ownerLane(...counts: readonly number[]): { lane: Lane; backlogs: Backlog[] } {
  const lane = laneOf('read', 'owner.one', 'one');
  const backlogs = counts.map((count, partition) => {
    const backlog = backlogOf('read', partition);
    for (let at = 0; at < count; at++) backlog.queue.push(itemOf(`${partition}-${at}`));
    moveTo(backlog, lane);
    return backlog;
  });
  return { lane, backlogs };
}
const countsIn = (lane: Lane, partitions: number): number[] => {
  const { backlogs = [] } = gather(lane, 0) ?? {};
  return Array.from({ length: partitions }, (_, at) => backlogs.filter(({ partition }) => partition === at).length);
};

t.test('a message has an equal part for each partition, and the rest for those that have more', (t) => {
  const { batchItems } = limits;
  const { lane } = ownerLane(3 * batchItems, 5, 3 * batchItems);
  const part = Math.ceil(batchItems / 3);
  t.same(countsIn(lane, 3), [batchItems - 5 - part, 5, part], 'the first of them in the first message');
  t.same(countsIn(lane, 3), [batchItems / 2, 0, batchItems / 2]);
  t.end();
});

t.test('a partition that had no turn for lack of room comes first in the next message', (t) => {
  const large = (id: string): Item =>
    newItem({ ...readOf(id), rid: 'x'.repeat(limits.batchBytes / 2) }, 1000, () => {});
  const { lane, backlogs } = ownerLane(0, 0, 0);
  for (const backlog of backlogs) {
    for (let at = 0; at < 2; at++) backlog.queue.push(large(`${at}`));
    enlist(backlog);
  }
  const turns = Array.from({ length: 6 }, () => countsIn(lane, 3).indexOf(1));
  t.same(turns, [0, 1, 2, 0, 1, 2]);
  t.end();
});

t.test('a partition that pauses, or has a share in enough messages, stays out of the message', (t) => {
  const { lane, backlogs } = ownerLane(1, 1, 1);
  const [paused, busy] = backlogs as [Backlog, Backlog, Backlog];
  paused.pausedUntilMs = 100;
  busy.inFlight = lane.maxInFlight;
  t.same(countsIn(lane, 3), [0, 0, 1]);
  t.equal(lane.waiting.size, 2);
  busy.inFlight--;
  t.same(countsIn(lane, 3), [0, 1, 0]);
  t.equal(gather(lane, 100)?.items.length, 1);
  t.end();
});

t.test('a partition that leaves a lane takes its asks along', (t) => {
  const { lane, backlogs } = ownerLane(2, 2);
  const [one] = backlogs as [Backlog, Backlog];
  moveTo(one, one.ownLane);
  t.same(countsIn(lane, 2), [0, 2]);
  t.same(countsIn(one.ownLane, 2), [2, 0]);
  t.end();
});
