import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { createQueue } from '../../../host-agent/reconcile/queue.ts';
import { until } from '../../support/until.ts';

/** Work that ends when the test says so. */
function gated() {
  const open = new Map<string, () => void>();
  const begun: string[] = [];
  const work = (key: string): Promise<void> => {
    begun.push(key);
    return new Promise((resolve) => open.set(key, resolve));
  };
  const end = async (key: string): Promise<void> => {
    open.get(key)?.();
    open.delete(key);
    await delay(0);
  };
  return { begun, work, end, working: () => [...open.keys()] };
}

t.test('a key has one worker; enqueued meanwhile, it gets another look', async (t) => {
  const { begun, work, end, working } = gated();
  const queue = createQueue<string>({ workers: 2, slowWorkers: 1, patienceMs: 60_000 }, work);
  for (const key of ['a', 'b', 'c', 'a', 'a']) queue.enqueue(key);
  t.same(working(), ['a', 'b'], 'two keys at a time, each with one worker');
  queue.enqueue('a');
  await end('b');
  t.same(working(), ['a', 'c']);
  await end('a');
  t.same(working(), ['c', 'a'], 'another look, because it was enqueued meanwhile');
  await end('c');
  await end('a');
  t.same(begun, ['a', 'b', 'c', 'a']);
  await queue.stop();
  queue.enqueue('d');
  t.equal(begun.length, 4, 'after a stop nothing begins');
});

t.test('keys that hang delay only each other', async (t) => {
  const { begun, work, end, working } = gated();
  const queue = createQueue<string>({ workers: 2, slowWorkers: 3, patienceMs: 1 }, work);
  const begins = (key: string, times = 1) =>
    until(
      () => `${key} begun ${times} times, not ${begun.join(' ')}`,
      () => begun.filter((each) => each === key).length === times,
    );
  // As many as the slow workers hold, and one more than the workers.
  for (const key of ['h1', 'h2', 'h3']) queue.enqueue(key);
  for (const key of ['a', 'b', 'c', 'd']) {
    queue.enqueue(key);
    await begins(key);
    await end(key);
  }
  t.same(working(), ['h1', 'h2', 'h3'], 'each of them still has one worker');
  for (const key of ['h1', 'h2', 'h3']) queue.enqueue(key);
  t.equal(begun.length, 7, 'and by one worker');
  await end('h1');
  await begins('h1', 2);
  t.same(working().toSorted(), ['h1', 'h2', 'h3'], 'slow keys stay with the slow workers');
  for (const key of ['h1', 'h2', 'h3']) await end(key);
  await begins('h2', 2);
  await begins('h3', 2);
  for (const key of ['h1', 'h2', 'h3']) await end(key);
  await queue.stop();
});

t.test('slow and quick work are bounded together, whatever hangs', async (t) => {
  const { begun, work, end, working } = gated();
  const queue = createQueue<string>({ workers: 2, slowWorkers: 3, patienceMs: 1 }, work);
  const keys = Array.from({ length: 20 }, (_, index) => `k${index}`);
  for (const key of keys) queue.enqueue(key);
  await until(
    () => `five at a time, not ${working().length}`,
    () => working().length === 5,
  );
  while (begun.length < keys.length || working().length > 0) {
    t.ok(working().length <= 5);
    await end(working()[0] ?? '');
  }
  t.same(begun.toSorted(), keys.toSorted(), 'each got one look');
  await queue.stop();
});

t.test('a key waits until its time, unless its work begins sooner; a later wait replaces it', async (t) => {
  const worked: string[] = [];
  const queue = createQueue<string>({ workers: 1, slowWorkers: 1, patienceMs: 60_000 }, (key) => {
    worked.push(key);
    return Promise.resolve();
  });
  queue.later('sooner', 20);
  queue.enqueue('sooner');
  queue.later('replaced', 60_000);
  queue.later('replaced', 10);
  await until('the key whose time has come', () => worked.includes('replaced'));
  await new Promise((resolve) => setTimeout(resolve, 30));
  t.same(worked, ['sooner', 'replaced']);
  queue.later('never', 1);
  await queue.stop();
  queue.later('never', 1);
  await new Promise((resolve) => setTimeout(resolve, 20));
  t.notOk(worked.includes('never'), 'a stopped queue begins nothing');
});
