import t from 'tap';
import { createOpenings } from '../../../host-agent/logs/openings.ts';

t.test('no more than that many are under way, and the next begins when one ends', async (t) => {
  const openings = createOpenings(2);
  const [first, second] = [await openings.begin(), await openings.begin()];
  const begun: string[] = [];
  const later = ['third', 'fourth'].map((name) =>
    openings.begin().then((end) => {
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
  const again = [await openings.begin(), await openings.begin()];
  t.equal(again.length, 2);
});
