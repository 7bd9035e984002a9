import t from 'tap';
import { createPlaces } from '../../lib/places.ts';

t.test('no more than that many are under way, and the next begins when one ends', async (t) => {
  const places = createPlaces(2);
  const [first, second] = [await places.take(), await places.take()];
  const begun: string[] = [];
  const later = ['third', 'fourth'].map((name) =>
    places.take().then((end) => {
      begun.push(name);
      return end;
    }),
  );
  await Promise.resolve();
  t.same(begun, []);
  first();
  first();
  await later[0];
  t.same(begun, ['third'], 'an end that is told twice counts once');
  second();
  for (const each of later) (await each)();
  t.same(begun, ['third', 'fourth']);
  const again = [await places.take(), await places.take()];
  t.equal(again.length, 2);
});

t.test('work that would wait behind too many, or has waited too long, is refused', async (t) => {
  const places = createPlaces(1, { most: 1, refuse: (why) => new Error(why) });
  t.ok(places.isIdle);
  const end = await places.take();
  t.notOk(places.isIdle);
  const late = places.run(() => Promise.resolve('late'), 5);
  await t.rejects(
    places.run(() => Promise.resolve('full')),
    { message: 'full' },
  );
  await t.rejects(late, { message: 'late' });
  const next = places.run(() => Promise.reject(new Error('broken')), 60_000);
  end();
  await t.rejects(next, { message: 'broken' });
  t.ok(places.isIdle, 'a failure gives its place back');
});
