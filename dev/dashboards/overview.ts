/** The dashboard that an operator looks at first: requests, errors, latency and saturation. */
import type { Board } from './grafana.ts';
import { chosen, count, graph, percentile, percentiles, rateBy, rateOf } from './queries.ts';

/** Streams and waits end when their client or their time ends, whatever the cluster does. */
const answered = `${chosen}, route!="container.wait"`;
/** The jobs of deploy/prometheus/: other programs have metrics of these names, too. */
const ours = 'job=~"longshore-.+"';
const requests = 'longshore_gateway_requests_total';
const seconds = 'longshore_gateway_request_duration_seconds';

export const overview: Board = {
  file: 'overview',
  title: 'Longshore: overview',
  what: 'Requests, errors, latency and saturation of the gateways, and what every program uses.',
  variables: [{ name: 'instance', metric: 'longshore_build_info' }],
  panels: [
    count('Programs down', 'Programs that Prometheus cannot scrape.', `count(up{${ours}} == 0) or vector(0)`),
    count('Gateways ready', 'Gateways whose /readyz answers 200.', 'sum(longshore_gateway_ready)'),
    count(
      'Hosts lost',
      'Hosts that were silent for too long.',
      'max(longshore_actors_hosts{state="lost"}) or vector(0)',
    ),
    count('Partitions without owner', 'Their tenants get 503.', 'max(longshore_actors_partitions_unserved)'),
    graph('Requests by status', 'What clients ask for, and what they get.', 'reqps', rateBy(requests, 'status')),
    graph(
      'Share of 500, 503 and 504',
      'Over one in a hundred for minutes is an alert. 500 is a bug; the others mean a problem behind the gateway.',
      'percentunit',
      {
        expr: `(sum(rate(${requests}{${answered}, status=~"50[034]"}[$__rate_interval])) or vector(0)) / sum(rate(${requests}{${answered}}[$__rate_interval]))`,
        legend: 'failed',
      },
    ),
    graph(
      'Latency',
      'From the headers of a request to its reply, without streams and waits.',
      's',
      ...percentiles(seconds),
    ),
    graph('Latency by route', 'The 99th percentile of each route.', 's', percentile(seconds, 99, 'route')),
    graph('Requests by route', 'Which routes are used.', 'reqps', rateBy(requests, 'route')),
    graph('Requests in flight', 'At 4,096 in one gateway it refuses new requests with 503.', 'short', {
      expr: `longshore_gateway_requests_in_flight{${chosen}}`,
      legend: '{{instance}}',
    }),
    graph(
      'Refused: rate limits and credentials',
      'Answers 429 by limit, and 401 by cause.',
      'reqps',
      rateBy('longshore_gateway_rate_limited_total', 'limit'),
      rateBy('longshore_gateway_auth_failures_total', 'reason'),
    ),
    graph(
      'Asks that wait for an owner',
      'Near 10,000 the gateway refuses requests: an owner is slow or down.',
      'short',
      { expr: `sum by (lane) (longshore_gateway_lane_queue_length{${chosen}})`, legend: '{{lane}}' },
    ),
    graph(
      'Asks sent again',
      'Normal while a partition moves.',
      'ops',
      rateBy('longshore_gateway_retries_total', 'reason'),
    ),
    graph(
      'Open streams and sessions',
      'Streams of events and logs, waits, and sessions with hosts.',
      'short',
      { expr: `sum by (route) (longshore_gateway_open_streams{${chosen}})`, legend: '{{route}}' },
      { expr: `sum(longshore_gateway_tunnels{${chosen}})`, legend: 'sessions' },
    ),
    graph(
      'Event loop delay',
      'The 99th percentile. Over 0.1 s for minutes: the process is short of CPU, or something blocks it.',
      's',
      { expr: `longshore_event_loop_delay_seconds{${chosen}, percentile="99"}`, legend: '{{job}} {{instance}}' },
    ),
    graph('Longest block of the event loop', 'Over 0.05 s: something kept the process from answering.', 's', {
      expr: `longshore_event_loop_longest_block_seconds{${chosen}}`,
      legend: '{{job}} {{instance}}',
    }),
    graph('CPU', 'In cores. Near 1: a program computes on one.', 'short', {
      expr: `rate(process_cpu_seconds_total{${ours}, ${chosen}}[$__rate_interval])`,
      legend: '{{job}} {{instance}}',
    }),
    graph('Memory', 'Resident. Steady after hours of the same load.', 'bytes', {
      expr: `process_resident_memory_bytes{${ours}, ${chosen}}`,
      legend: '{{job}} {{instance}}',
    }),
    graph(
      'Failovers between NATS servers',
      'A server did not answer.',
      'ops',
      rateOf('longshore_nats_failovers_total', 'failovers'),
    ),
    graph('Versions', 'More than one for long: a roll-out stopped half-way.', 'short', {
      expr: `count by (program, version) (longshore_build_info{${chosen}})`,
      legend: '{{program}} {{version}}',
    }),
  ],
};
