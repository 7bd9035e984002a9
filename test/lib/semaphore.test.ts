import t from 'tap';
import { createSemaphore } from '../../lib/semaphore.ts';

t.test('no more than that many are under way, and the next begins when one ends', async (t) => {
  const semaphore = createSemaphore(2);
  const [first, second] = [await semaphore.acquire(), await semaphore.acquire()];
  const begun: string[] = [];
  const later = ['third', 'fourth'].map((name) =>
    semaphore.acquire().then((end) => {
      begun.push(name);
      return end;
    }),
  );
  await Promise.resolve();
  t.same(begun, []);
  first();
  first();
  await later[0];
  t.same(begun, ['third'], 'an end that is called twice counts once');
  second();
  for (const each of later) (await each)();
  t.same(begun, ['third', 'fourth']);
  const again = [await semaphore.acquire(), await semaphore.acquire()];
  t.equal(again.length, 2);
});

t.test('work that would wait behind too many, or has waited too long, is refused', async (t) => {
  const semaphore = createSemaphore(1, { most: 1, refuse: (why) => new Error(why) });
  t.ok(semaphore.isIdle);
  const end = await semaphore.acquire();
  t.notOk(semaphore.isIdle);
  const late = semaphore.run(() => Promise.resolve('late'), 5);
  await t.rejects(
    semaphore.run(() => Promise.resolve('full')),
    { message: 'full' },
  );
  await t.rejects(late, { message: 'late' });
  const next = semaphore.run(() => Promise.reject(new Error('broken')), 60_000);
  end();
  await t.rejects(next, { message: 'broken' });
  t.ok(semaphore.isIdle, 'a failure gives its permit back');
});
