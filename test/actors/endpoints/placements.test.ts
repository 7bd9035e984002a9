/** Sums of placements on hosts by partition, which return to zero. */
import t from 'tap';
import { Placements } from '../../../actors/endpoints/placements.ts';
import { h1, h2, none } from '../support/records.ts';

const used = (cpu_millis: number, mem_bytes: number, containers: number) => ({ cpu_millis, mem_bytes, containers });
const amounts = (cpuMillis: number, memBytes: number, ports = 0) => ({ cpuMillis, memBytes, ports });

t.test('each amount by itself is the greater of what was placed and what the host counts', (t) => {
  const placements = new Placements();
  t.same(placements.used(h1, undefined), none, 'nothing known');
  t.same(placements.used(h1, used(10, 20, 1)), used(10, 20, 1), 'others place there too');
  placements.add(h1, amounts(100, 7));
  placements.add(h1, amounts(50, 7));
  t.same(placements.used(h1, undefined), used(150, 14, 2));
  t.same(placements.used(h1, used(149, 20, 2)), used(150, 20, 2));
  t.same(placements.used(h2, undefined), none, 'host by host');
  t.end();
});

t.test('the last container takes with it whatever was left, and several go at once', (t) => {
  const placements = new Placements();
  for (let count = 0; count < 3; count++) placements.add(h1, amounts(100, 10));
  placements.subtract(h1, amounts(100, 10));
  t.same(placements.used(h1, undefined), used(200, 20, 2), 'one, where no number is said');
  placements.subtract(h1, amounts(150, 20), 2);
  t.same(placements.used(h1, undefined), none);
  placements.subtract(h1, amounts(100, 10));
  placements.subtract(h2, amounts(100, 10), 3);
  t.same(
    [h1, h2].map((host) => placements.used(host, undefined)),
    [none, none],
    'never below nothing',
  );
  placements.add(h1, amounts(1, 1));
  t.same(placements.used(h1, undefined), used(1, 1, 1), 'and nothing is owed later');
  t.end();
});

t.test('ports are those of all containers that are placed there', (t) => {
  const placements = new Placements();
  t.equal(placements.ports(h1), 0);
  placements.add(h1, amounts(1, 1, 2));
  placements.add(h1, amounts(1, 1, 3));
  t.same([placements.ports(h1), placements.ports(h2)], [5, 0]);
  placements.subtract(h1, amounts(1, 1, 2));
  t.equal(placements.ports(h1), 3);
  t.end();
});
