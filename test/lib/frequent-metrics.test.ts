import { Counter, Histogram, Registry } from 'prom-client';
import t from 'tap';
import { FrequentHistogram, frequentCounter } from '../../lib/frequent-metrics.ts';

const about = { name: 'test_seconds', help: 'Test.', labelNames: ['route' as const] };

t.test('a histogram is exposed as that of prom-client', async (t) => {
  const [ours, theirs] = [new Registry(), new Registry()];
  const buckets = [0.001, 0.5, 2];
  const own = new FrequentHistogram({ ...about, buckets, registers: [ours] });
  const library = new Histogram({ ...about, buckets, registers: [theirs] });
  t.equal(await ours.metrics(), await theirs.metrics(), 'without values');

  const children = new Map(['a', 'b'].map((route) => [route, own.child({ route })]));
  own.child({ route: 'never seen' });
  const observed: [route: string, value: number][] = [
    ['a', 0],
    ['a', 0.001],
    ['b', 0.0011],
    ['a', 2],
    ['a', 2.1],
    ['a', 100],
  ];
  for (let scrape = 0; scrape < 3; scrape++) {
    for (const [route, value] of observed) {
      children.get(route)?.observe(value);
      library.observe({ route }, value);
    }
    t.equal(await ours.metrics(), await theirs.metrics());
  }
});

t.test('a counter is exposed as that of prom-client', async (t) => {
  const [ours, theirs] = [new Registry(), new Registry()];
  const child = frequentCounter({ ...about, registers: [ours] });
  const library = new Counter({ ...about, registers: [theirs] });
  const [one, other] = [child({ route: 'a' }), child({ route: 'b' })];
  t.equal(await ours.metrics(), await theirs.metrics(), 'nothing counted');

  for (let scrape = 0; scrape < 3; scrape++) {
    one.count += 2;
    library.inc({ route: 'a' }, 2);
    if (scrape === 1) {
      other.count++;
      library.inc({ route: 'b' });
    }
    t.equal(await ours.metrics(), await theirs.metrics());
  }
});
