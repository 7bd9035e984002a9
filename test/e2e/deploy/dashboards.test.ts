/** Every query of the dashboards of deploy/grafana/, run by a Prometheus that scrapes a rig. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { programMetrics } from '../../../dev/docs/program-metrics.ts';
import { repositoryRoot } from '../../../dev/paths.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { namesIn } from '../../support/prometheus/promql.ts';
import { eventually } from '../support/eventually.ts';
import { startRig } from '../support/rig.ts';
import { startPrometheus } from './support/prometheus.ts';

t.setTimeout(300_000);
const folder = join(repositoryRoot, 'deploy/grafana/dashboards');

interface Dashboard {
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: string | { readonly query: string } }[];
  };
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
}

const dashboards = readdirSync(folder).map((name) => ({
  name,
  ...(JSON.parse(readFileSync(join(folder, name), 'utf8')) as Dashboard),
}));

/** The labels of each series: those of its metric, and those that a scrape adds. */
const added = ['instance', 'job'];
const labelsOf = new Map<string, readonly string[]>([
  ['up', added],
  ...Object.values(programMetrics)
    .flat()
    .flatMap(({ name, type, labels }): [string, readonly string[]][] =>
      type === 'histogram'
        ? ['_bucket', '_sum', '_count'].map((end) => [name + end, [...labels, ...added, 'le']])
        : [[name, [...labels, ...added]]],
    ),
]);

/** The names in a query that no program of ours exports. */
function unknownIn(expr: string): string[] {
  const { metrics, labels } = namesIn(expr);
  const known = new Set(metrics.flatMap((name) => labelsOf.get(name) ?? []));
  return [...metrics.filter((name) => !labelsOf.has(name)), ...labels.filter((name) => !known.has(name))];
}

/** A query as Grafana asks it with everything chosen, where scrapes come each second. */
const filled = (expr: string): string =>
  expr.replaceAll('$__rate_interval', '10s').replaceAll(/\$(?:instance|tenant|container)\b/g, '.*');

t.test('names that no program exports are found', (t) => {
  t.same(unknownIn('sum(rate(longshore_gateway_request_total[5m]))'), ['longshore_gateway_request_total']);
  t.same(unknownIn('sum by (code) (longshore_gateway_requests_total{path="/"})'), ['code', 'path']);
  t.same(unknownIn('longshore_gateway_request_duration_seconds'), ['longshore_gateway_request_duration_seconds']);
  t.end();
});

t.test('dashboards', async (t) => {
  t.same(
    dashboards.flatMap(({ name, templating, panels }) => [
      ...panels.flatMap(({ title, targets }) =>
        targets.flatMap(({ expr }) => unknownIn(expr).map((unknown) => `${name}: ${title}: ${unknown}`)),
      ),
      ...templating.list.flatMap(({ query }) => {
        const [, metric, label = ''] =
          /^label_values\((\w+), (\w+)\)$/.exec(typeof query === 'string' ? query : query.query) ?? [];
        const isKnown = metric === undefined || labelsOf.get(metric)?.includes(label) === true;
        return isKnown ? [] : [`${name}: ${metric} has no label ${label}`];
      }),
    ]),
    [],
    'they name only what programs export',
  );

  const rig = await startRig(t, { agent: { CONTAINER_METRICS: 'on', USAGE_INTERVAL: '500ms' } });
  const acme = await rig.client('acme');
  await acme.createRunning([{ name: 'web', ...rig.image, cpu_limit: '0.5', mem_limit: '64m' }]);
  const hostOf = (url: string): string => new URL(url).host;
  const prometheus = await startPrometheus(t, join(temporaryFolder(t), 'prometheus'), {
    'longshore-gateway': hostOf(rig.metricsUrls.gateway),
    'longshore-actors': hostOf(rig.metricsUrls.actors),
    'longshore-host-agent': hostOf(rig.metricsUrls['host-agent']),
    'longshore-forage': hostOf(rig.baseUrl),
  });
  // A rate needs two scrapes of each.
  await eventually(
    'all are scraped, and scraped again',
    async () => {
      await acme.call('GET', '/api/v2/compute');
      return prometheus.range('count(min_over_time(up[3s]) == 1 and count_over_time(up[3s]) > 2)', 0);
    },
    (answer) => JSON.stringify(answer).includes('"4"'),
  );
  const scraped = await prometheus.names();
  t.ok(scraped.has('longshore_agent_container_memory_bytes'), 'containers have metrics');

  await t.test('a query that does not parse is refused', async (t) => {
    t.equal((await prometheus.range(filled('sum(rate(longshore_build_info[$__rate_interval])'), 5)).status, 'error');
  });

  for (const { name, panels } of dashboards) {
    await t.test(name, async (t) => {
      t.ok(panels.length > 4);
      for (const { title, targets } of panels) {
        for (const { expr } of targets) {
          const answer = await prometheus.range(filled(expr), 5);
          if (answer.status !== 'success') {
            t.fail(`${title}: ${answer.error} in ${expr}`);
            continue;
          }
          // A counter with labels appears when it counts first.
          const hasData = namesIn(expr).metrics.every((metric) => scraped.has(metric));
          t.ok(answer.data.result.length > 0 || !hasData, `${title}: ${expr}`);
        }
      }
    });
  }
});
