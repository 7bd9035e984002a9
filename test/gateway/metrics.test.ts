import { Registry } from 'prom-client';
import t from 'tap';
import { createMeters } from '../../gateway/metrics.ts';

/** The samples whose line begins so, without those of buckets. */
async function samples(registry: Registry, name: string): Promise<string[]> {
  const lines = (await registry.metrics()).split('\n');
  return lines.filter((line) => line.startsWith(name) && !line.includes('_bucket')).toSorted();
}

t.test('each scrape has every request so far, by route and status', async (t) => {
  const registry = new Registry();
  const meters = createMeters(registry);
  const requests = () => samples(registry, 'longshore_gateway_requests_total');
  t.same(await requests(), []);

  meters.request('container.get', 200, 0.25, false);
  meters.request('container.get', 200, 0.5, false);
  meters.request('container.get', 404, 0.25, false);
  meters.request('container.wait', 200, 30, true);
  const first = [
    'longshore_gateway_requests_total{route="container.get",status="200"} 2',
    'longshore_gateway_requests_total{route="container.get",status="404"} 1',
    'longshore_gateway_requests_total{route="container.wait",status="200"} 1',
  ];
  t.same(await requests(), first);
  t.same(await requests(), first, 'a scrape takes nothing away');

  meters.request('container.get', 404, 0.25, false);
  t.equal((await requests())[1], 'longshore_gateway_requests_total{route="container.get",status="404"} 2');
  t.same(
    await samples(registry, 'longshore_gateway_request_duration_seconds'),
    [
      'longshore_gateway_request_duration_seconds_count{route="container.get"} 4',
      'longshore_gateway_request_duration_seconds_sum{route="container.get"} 1.25',
    ],
    'without waits',
  );
});

t.test('look-ups in the cache of tokens are counted by result', async (t) => {
  const registry = new Registry();
  const meters = createMeters(registry);
  meters.token('hit');
  meters.token('miss');
  meters.token('hit');
  t.same(await samples(registry, 'longshore_gateway_token_cache_lookups_total'), [
    'longshore_gateway_token_cache_lookups_total{result="hit"} 2',
    'longshore_gateway_token_cache_lookups_total{result="miss"} 1',
  ]);
});
