/** What partitions have placed on hosts: sums that come back to nothing. */
import t from 'tap';
import { Placements } from '../../../actors/endpoints/placements.ts';
import { h1, h2, none } from '../support/records.ts';

const used = (cpu_millis: number, mem_bytes: number, containers: number) => ({ cpu_millis, mem_bytes, containers });

t.test('each amount by itself is the greater of what was placed and what the host counts', (t) => {
  const placements = new Placements();
  t.same(placements.used(h1, undefined), none, 'nothing known');
  t.same(placements.used(h1, used(10, 20, 1)), used(10, 20, 1), 'others place there too');
  placements.add(h1, 100, 7);
  placements.add(h1, 50, 7);
  t.same(placements.used(h1, undefined), used(150, 14, 2));
  t.same(placements.used(h1, used(149, 20, 2)), used(150, 20, 2));
  t.same(placements.used(h2, undefined), none, 'host by host');
  t.end();
});

t.test('the last container takes with it whatever was left, and several go at once', (t) => {
  const placements = new Placements();
  for (let count = 0; count < 3; count++) placements.add(h1, 100, 10);
  placements.subtract(h1, 100, 10);
  t.same(placements.used(h1, undefined), used(200, 20, 2), 'one, where no number is said');
  placements.subtract(h1, 150, 20, 2);
  t.same(placements.used(h1, undefined), none);
  placements.subtract(h1, 100, 10);
  placements.subtract(h2, 100, 10, 3);
  t.same(
    [h1, h2].map((host) => placements.used(host, undefined)),
    [none, none],
    'never below nothing',
  );
  placements.add(h1, 1, 1);
  t.same(placements.used(h1, undefined), used(1, 1, 1), 'and nothing is owed later');
  t.end();
});
