/** The gateway's metrics. Labels are route names and codes, never a tenant, an id or a path. */
import type { Registry } from 'prom-client';
import {
  counter,
  histogram,
  label,
  reading,
  readAtScrapes,
  record,
  upDownCounter,
  type Recorders,
} from '../lib/metric-table.ts';
import { laneKinds, type LaneKind } from '../lib/rpc/lane.ts';
import type { RetryReason } from '../lib/rpc/item.ts';

/** The result of an agent's ask for a value. */
export type Unsealed = 'sealed' | 'no_login' | 'invalid' | 'forged' | 'refused' | 'unavailable' | 'limited';

export const gatewayPrefix = 'longshore_gateway_';

export const gatewayMetrics = {
  requests: counter('requests_total', {
    help: 'HTTP requests by route and status.',
    watch: 'The share of 5xx. 503 and 504: a problem behind the gateway; 500: a bug.',
    labels: [label('route'), label<number>('status')],
  }),
  duration: histogram('request_duration_seconds', {
    help: 'Time from a request’s headers to its reply, by route, without streams and waits.',
    watch: 'The 99th percentile of creates and of reads: what users notice first.',
    labels: [label('route')],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  }),
  batch: histogram('batch_items', {
    help: 'Asks in one message to the owner of a partition, by lane.',
    watch: 'The requests that share a message; rises with the load.',
    labels: [label('lane', ...laneKinds)],
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
  }),
  retry: counter('retries_total', {
    help: 'Asks sent again, by reason.',
    watch: '`no_responders` and `not_owner` while a partition moves; `lost` counts attempts without an answer in time.',
    labels: [label<RetryReason>('reason', 'no_responders', 'not_owner', 'lost')],
  }),
  token: counter('token_cache_lookups_total', {
    help: 'Look-ups in the cache of verified tokens, by result.',
    watch: 'The share of `hit`. Low: many short-lived tokens, and CPU spent on signatures.',
    labels: [label('result', 'hit', 'miss')],
  }),
  authFailure: counter('auth_failures_total', {
    help: 'Requests answered 401, or 503 because keys or revocations are unknown, by cause.',
    watch:
      '`reason="unavailable"` or `"revocations unknown"` are failures of the control plane (503); a burst of the others is a client with an old token, or an attack.',
    labels: [label('reason')],
  }),
  rateLimited: counter('rate_limited_total', {
    help: 'Requests answered 429, by limit.',
    watch:
      'By `limit`: `tenant`, `address` (failed authentications, public requests, requests at a time, unfinished bodies) or `streams`.',
    labels: [label('limit', 'tenant', 'address', 'streams')],
  }),
  streams: upDownCounter('open_streams', {
    help: 'Open Server-Sent Events streams and waits, by route.',
    watch: 'At most 32 for each tenant and `LIMIT_STREAMS_PER_ADDRESS` for each address; more get 429.',
    labels: [label('route')],
  }),
  badLogBlock: counter('malformed_log_blocks_total', {
    help: 'Messages of the log or event stream skipped because they could not be read.',
    watch: 'Any: an agent of another version, or damage in the stream.',
  }),
  unseal: counter('unseals_total', {
    help: 'Requests of agents for secrets and registry logins, by result.',
    watch:
      '`unavailable`: owners or the vault’s keys are away. `refused`: a host asked for what it may not have: after a re-enrolment, or an attack. `forged`: somebody asked in the name of a host and lacks its key: the clock of the host is wrong, `hosts.jwt` of the gateway is an old one, or somebody has credentials of the control plane: replace them. `limited`: a host asks too often. The event `unseal_failed` has these words as its `reason`, and says why.',
    labels: [label<Unsealed>('result', 'sealed', 'no_login', 'invalid', 'forged', 'refused', 'unavailable', 'limited')],
  }),
  auditLineLost: counter('audit_lines_lost_total', {
    help: 'Lines that no owner has put into the audit in time; the log has them.',
    watch:
      'Any: an owner did not answer for two seconds. The log of the gateway has the line (event `audit_line_lost`).',
  }),
};

export interface Meters extends Omit<Recorders<typeof gatewayMetrics>, 'requests' | 'duration' | 'streams'> {
  /** @param waited its duration is not ours */
  request(route: string, status: number, seconds: number, waited: boolean): void;
  streamOpened(route: string): void;
  streamClosed(route: string): void;
}

export function createMeters(registry: Registry): Meters {
  const { requests, duration, streams, ...rest } = record(registry, gatewayPrefix, gatewayMetrics);
  return {
    ...rest,
    request: (route, status, seconds, waited) => {
      requests(route, status);
      if (!waited) duration(route, seconds);
    },
    streamOpened: (route) => streams(route, 1),
    streamClosed: (route) => streams(route, -1),
  };
}

/** Read at each scrape. */
export interface Gauges {
  queued(kind: LaneKind): number;
  tokenCacheEntries(): number;
  revocations(): number;
  tenantsRefused(): number;
  inFlight(): number;
  tunnels(): number;
  ready(): boolean;
}

const read = reading<Gauges>();

export const gatewayGauges = {
  queued: read('gauge', 'lane_queue_length', {
    help: 'Asks waiting for a place in a message, by lane, over all partitions.',
    watch: 'Near 10,000 the gateway refuses requests: an owner is slow or down.',
    labels: [label('lane', ...laneKinds)],
    read: (gauges) => laneKinds.map((kind) => [kind, gauges.queued(kind)] as const),
  }),
  tokenCacheEntries: read('gauge', 'token_cache_entries', {
    help: 'Verified tokens in the cache.',
    watch: 'At 20,000 the cache is full, and the gateway verifies tokens repeatedly.',
    read: (gauges) => gauges.tokenCacheEntries(),
  }),
  revocations: read('gauge', 'revocations', {
    help: 'Revocations known to this gateway.',
    watch: 'If a tenant’s revocations do not fit (event `revocations_full`), only that tenant is refused.',
    read: (gauges) => gauges.revocations(),
  }),
  tenantsRefused: read('gauge', 'tenants_refused', {
    help: 'Tenants whose tokens are refused because their revocations are unknown.',
    watch:
      'Over 0: the record of a tenant is damaged (event `revocations_unreadable`), or it has more revocations than a gateway keeps (`revocations_full`). Its tokens get 503; see the runbook.',
    read: (gauges) => gauges.tenantsRefused(),
  }),
  inFlight: read('gauge', 'requests_in_flight', {
    help: 'Requests without a complete reply yet.',
    watch: 'At 4,096 the gateway refuses new ones with 503.',
    read: (gauges) => gauges.inFlight(),
  }),
  tunnels: read('gauge', 'tunnels', {
    help: 'Open sessions with hosts, such as an exec.',
    watch: 'At 512 the gateway refuses more.',
    read: (gauges) => gauges.tunnels(),
  }),
  ready: read('gauge', 'ready', {
    help: '1 if /readyz answers 200.',
    watch: '0 for longer than a minute, and not stopping: see the runbook, “NATS outage”.',
    read: (gauges) => (gauges.ready() ? 1 : 0),
  }),
};

export const registerGauges = (registry: Registry, gauges: Gauges): void =>
  readAtScrapes(registry, gatewayPrefix, gatewayGauges, gauges);
