/** The gateway's metrics. Labels are route names and codes, never a tenant, an id or a path. */
import { Counter, Gauge, type Registry } from 'prom-client';
import { FrequentHistogram, frequentCounter } from '../lib/frequent-metrics.ts';
import type { PartitionClientMeters } from '../lib/rpc/partition-client.ts';
import { laneKinds, type LaneKind } from '../lib/rpc/lane.ts';

/** How an agent's ask for a value ended. */
export type Unsealed =
  'sealed' | 'no_login' | 'invalid' | 'unsigned' | 'forged' | 'refused' | 'unavailable' | 'limited';

export interface Meters extends PartitionClientMeters {
  request(route: string, status: number, seconds: number, waited: boolean): void;
  token(result: 'hit' | 'miss'): void;
  authFailure(why: string): void;
  rateLimited(what: 'tenant' | 'address' | 'streams'): void;
  streamOpened(route: string): void;
  streamClosed(route: string): void;
  badLogBlock(): void;
  unseal(result: Unsealed): void;
  auditLineLost(): void;
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

const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const batchBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** Routes and their statuses are few, so nothing is ever forgotten. */
function memoized<K, V>(make: (key: K) => V): (key: K) => V {
  const made = new Map<K, V>();
  return (key) => {
    const known = made.get(key);
    if (known !== undefined) return known;
    const value = make(key);
    made.set(key, value);
    return value;
  };
}

export function createMeters(registry: Registry): Meters {
  const registers = [registry];
  const requests = frequentCounter({
    name: 'longshore_gateway_requests_total',
    help: 'HTTP requests by route and status.',
    labelNames: ['route', 'status'],
    registers,
  });
  const duration = new FrequentHistogram({
    name: 'longshore_gateway_request_duration_seconds',
    help: 'Time from a request’s headers to its reply, by route, without streams and waits.',
    labelNames: ['route'],
    buckets: durationBuckets,
    registers,
  });
  const batches = new FrequentHistogram({
    name: 'longshore_gateway_batch_items',
    help: 'Asks in one message to the owner of a partition, by lane.',
    labelNames: ['lane'],
    buckets: batchBuckets,
    registers,
  });
  const retries = new Counter({
    name: 'longshore_gateway_retries_total',
    help: 'Asks sent again, by reason.',
    labelNames: ['reason'],
    registers,
  });
  const tokens = frequentCounter({
    name: 'longshore_gateway_token_cache_lookups_total',
    help: 'Look-ups in the cache of verified tokens, by result.',
    labelNames: ['result'],
    registers,
  });
  const authFailures = new Counter({
    name: 'longshore_gateway_auth_failures_total',
    help: 'Requests answered 401, or 503 because keys or revocations are unknown, by cause.',
    labelNames: ['why'],
    registers,
  });
  const rateLimited = new Counter({
    name: 'longshore_gateway_rate_limited_total',
    help: 'Requests answered 429, by limit.',
    labelNames: ['limit'],
    registers,
  });
  const streams = new Gauge({
    name: 'longshore_gateway_open_streams',
    help: 'Open Server-Sent Events streams and waits, by route.',
    labelNames: ['route'],
    registers,
  });
  const badBlocks = new Counter({
    name: 'longshore_gateway_malformed_log_blocks_total',
    help: 'Messages of the log or event stream skipped because they could not be read.',
    registers,
  });

  const unseals = new Counter({
    name: 'longshore_gateway_unseals_total',
    help: 'Asks of agents for secrets and registry logins, by result.',
    labelNames: ['result'],
    registers,
  });

  const auditLines = new Counter({
    name: 'longshore_gateway_audit_lines_lost_total',
    help: 'Lines that no owner has put into the audit in time; the log has them.',
    registers,
  });

  const batchChildren = new Map(laneKinds.map((kind) => [kind, batches.child({ lane: kind })]));
  const tokenChildren = { hit: tokens({ result: 'hit' }), miss: tokens({ result: 'miss' }) };
  const ofRoute = memoized((route: string) => ({
    duration: duration.child({ route }),
    withStatus: memoized((status: number) => requests({ route, status: String(status) })),
  }));

  return {
    request(route, status, seconds, waited) {
      const children = ofRoute(route);
      children.withStatus(status).count++;
      if (!waited) children.duration.observe(seconds);
    },
    token: (result) => void tokenChildren[result].count++,
    authFailure: (why) => authFailures.labels(why).inc(),
    rateLimited: (what) => rateLimited.labels(what).inc(),
    streamOpened: (route) => streams.labels(route).inc(),
    streamClosed: (route) => streams.labels(route).dec(),
    badLogBlock: () => badBlocks.inc(),
    unseal: (result) => unseals.labels(result).inc(),
    auditLineLost: () => auditLines.inc(),
    batch: (lane, items) => batchChildren.get(lane)?.observe(items),
    retry: (reason, items) => retries.labels(reason).inc(items),
  };
}

export function registerGauges(registry: Registry, gauges: Gauges): void {
  const registers = [registry];
  new Gauge({
    name: 'longshore_gateway_lane_queue_length',
    help: 'Asks waiting for a place in a message, by lane, over all partitions.',
    labelNames: ['lane'],
    registers,
    collect() {
      for (const kind of laneKinds) this.labels(kind).set(gauges.queued(kind));
    },
  });
  const simple = (name: string, help: string, read: () => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  };
  simple('longshore_gateway_token_cache_entries', 'Verified tokens in the cache.', gauges.tokenCacheEntries);
  simple('longshore_gateway_revocations', 'Revocations known to this gateway.', gauges.revocations);
  simple(
    'longshore_gateway_tenants_refused',
    'Tenants whose tokens are refused because their revocations are unknown.',
    gauges.tenantsRefused,
  );
  simple('longshore_gateway_requests_in_flight', 'Requests without a complete reply yet.', gauges.inFlight);
  simple('longshore_gateway_tunnels', 'Open sessions with hosts, such as an exec.', gauges.tunnels);
  simple('longshore_gateway_ready', '1 if /readyz answers 200.', () => (gauges.ready() ? 1 : 0));
}
