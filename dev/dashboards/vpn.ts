/** The dashboard of VPN peers and their files. Prometheus scrapes /metrics/forage for it. */
import type { Board } from './grafana.ts';
import { chosen, graph, percentile, rateBy } from './queries.ts';

export const vpn: Board = {
  file: 'vpn',
  title: 'Longshore: VPN',
  what: 'Peers, downloads of their files, and certificates that end.',
  variables: [{ name: 'instance', metric: 'forage_build_info' }],
  panels: [
    // Every gateway says the same of the cluster.
    graph('Peers', 'Of all tenants, by state.', 'short', {
      expr: `max by (state) (forage_peers{${chosen}})`,
      legend: '{{state}}',
    }),
    graph('Time until certificates expire', 'Under 90 days is an alert for a server or an authority.', 's', {
      expr: `min by (cert) (forage_certificate_expiry_timestamp_seconds{${chosen}}) - time()`,
      legend: '{{cert}}',
    }),
    graph('Downloads', 'By file and format.', 'reqps', rateBy('forage_artifact_requests_total', 'artifact, format')),
    graph(
      'Downloads by outcome',
      'Unavailable and internal are failures.',
      'reqps',
      rateBy('forage_artifact_requests_total', 'result'),
    ),
    graph(
      'Time to make a file',
      'The 99th percentile, of what was not cached.',
      's',
      percentile('forage_artifact_build_duration_seconds', 99, 'artifact'),
    ),
    graph('Answers 401', 'By endpoint and reason.', 'reqps', rateBy('forage_auth_failures_total', 'endpoint, reason')),
  ],
};
