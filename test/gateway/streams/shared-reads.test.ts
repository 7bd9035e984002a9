import t from 'tap';
import { SharedReads } from '../../../gateway/streams/shared-reads.ts';

/** Reads that end when the test says so. */
function stage() {
  const shared = new SharedReads<number>();
  const begun: { resolve: (value: number) => void; reject: (error: Error) => void }[] = [];
  const read = (key = 'a') =>
    shared.of(key, () => new Promise((resolve, reject) => void begun.push({ resolve, reject })));
  return { shared, begun, read };
}

t.test('readers that come while a read is under way share the next one, which begins after it', async (t) => {
  const { shared, begun, read } = stage();
  const first = read();
  const [second, third] = [read(), read()];
  t.equal(begun.length, 1);
  begun[0]?.resolve(1);
  t.equal(await first, 1);
  const fourth = read();
  t.equal(begun.length, 2);
  begun[1]?.resolve(2);
  t.same(await Promise.all([second, third]), [2, 2]);
  begun[2]?.resolve(3);
  t.equal(await fourth, 3, 'it came after the second read began');
  t.equal(begun.length, 3);
  t.equal(shared.size, 0);
});

t.test('a read that fails is not shared with those that come after it began', async (t) => {
  const { shared, begun, read } = stage();
  const [first, second] = [read(), read()];
  begun[0]?.reject(new Error('the stream’s server is away'));
  await t.rejects(first, { message: /is away/ });
  begun[1]?.resolve(2);
  t.equal(await second, 2);
  t.equal(shared.size, 0);
});

t.test('other things are read at the same time', async (t) => {
  const { begun, read } = stage();
  const both = [read('a'), read('b')];
  t.equal(begun.length, 2);
  for (const { resolve } of begun) resolve(1);
  t.same(await Promise.all(both), [1, 1]);
});
