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
