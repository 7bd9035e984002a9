/**
 * The gateway’s connections: the cluster’s record, the client of the partitions, the revocations,
 * Redis. They are made while the process already listens but is not ready; until then asks get
 * `unavailable`.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import type { Answers } from '../../lib/nats/answers.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { watchCluster } from '../../lib/nats/cluster-record.ts';
import type { Log } from '../../lib/log.ts';
import type { Tracer } from '../../lib/trace/tracer.ts';
import { outcomeStatus } from '../../schemas/errors.ts';
import type { TenantId } from '../../schemas/ids.ts';
import { tenantRangesOf, type TenantRanges } from '../../schemas/tenant-network.ts';
import type { Cause } from '../../schemas/wire/audit.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import type { Revocation } from '../../schemas/api/tenant.ts';
import { RevocationFeed, type Knowledge } from '../auth/revocation-feed.ts';
import type { Revocations } from '../auth/revocations.ts';
import { waitForCluster } from './cluster.ts';
import {
  PartitionClient,
  type AskOwner,
  type LaneKind,
  type Outcome,
  type Question,
} from '../../lib/rpc/partition-client.ts';
import type { Meters } from '../metrics.ts';
import { probePartitions } from './prober.ts';
import type { RateLimiter } from '../auth/rate-limits.ts';
import { connectSharedMemory, type RedisAccess, type SharedMemory } from '../auth/redis.ts';

/** A gateway is ready when the owner of a partition has answered it within this time. */
const gatewayAnsweredMs = 7500;

export interface BackendOptions {
  /** `undefined` without Redis. */
  readonly redis: RedisAccess | undefined;
  /** The cluster that must be on the NATS servers; `undefined` allows any. */
  readonly expectedId: string | undefined;
  readonly requestDeadlineMs: number;
  readonly revocations: Revocations;
  readonly tenantRates: RateLimiter;
  /** `undefined` if nothing is traced. */
  readonly tracer?: Tracer | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly meters: Meters;
  /** Counts the answers on the connection that `start` gets. */
  readonly answers: Answers;
  /** An owner has answered a question with a cause. */
  readonly onOutcome: (cause: Cause, question: Question, outcome: Outcome) => void;
  /**
   * The NATS servers now hold another cluster: everything that the gateway knows of the old one is
   * void.
   */
  readonly onOtherCluster: (error: Error) => void;
}

interface Up {
  readonly client: PartitionClient;
  readonly feed: RevocationFeed;
  readonly shared: SharedMemory | undefined;
  readonly ranges: TenantRanges;
  readonly stopProbing: () => void;
}

const unavailable: Outcome = { code: 'unavailable', body: '' };

export class Backend {
  readonly #options: BackendOptions;
  readonly #stop = new AbortController();
  #up: Up | undefined;

  constructor(options: BackendOptions) {
    this.#options = options;
  }

  /** Resolves when everything is connected, however long that takes. */
  async start(nc: NatsConnection): Promise<void> {
    const { clock, log, meters, answers, requestDeadlineMs, revocations, expectedId, onOtherCluster } = this.#options;
    const cluster = await waitForCluster(nc, { log, expectedId, answers }, this.#stop.signal);
    if (cluster === undefined) return;
    const { partitions } = cluster;
    log.info('cluster_found', { cluster: cluster.id, partitions });
    const client = new PartitionClient(nc, { partitions, requestDeadlineMs, clock, log, meters, answers });
    const feed = new RevocationFeed(client, revocations, { clock, log });
    const shared = this.#connectRedis(cluster.id, feed);
    this.#up = { client, feed, shared, ranges: tenantRangesOf(cluster), stopProbing: probePartitions(client, clock) };
    feed.start();
    void watchCluster(nc, cluster, onOtherCluster, this.#stop.signal, subjects.read('cluster'));
  }

  stop(): void {
    this.#stop.abort();
    this.#up?.stopProbing();
    this.#up?.feed.stop();
    this.#up?.shared?.stop();
    this.#up?.client.stop();
  }

  /** A connection alone is not enough: its server may be cut off from the others. */
  ready(): boolean {
    if (this.#up === undefined) return false;
    const { client, feed } = this.#up;
    return client.connected() && client.unansweredMs() <= gatewayAnsweredMs && feed.complete();
  }

  /** A request that makes keys may take long; each of its asks takes no longer than any other's. */
  readonly ask: AskOwner = (kind, question, deadlineMs) => {
    const { clock, requestDeadlineMs } = this.#options;
    const untilMs = Math.min(deadlineMs, clock.monotonicMs() + requestDeadlineMs);
    const asked =
      question.trace === undefined ? this.#ask(kind, question, untilMs) : this.#askTraced(kind, question, untilMs);
    const cause = 'cause' in question ? question.cause : undefined;
    return cause === undefined ? asked : this.#telling(asked, question, cause);
  };

  async #telling(asked: Promise<Outcome>, question: Question, cause: Cause): Promise<Outcome> {
    const outcome = await asked;
    this.#options.onOutcome(cause, question, outcome);
    return outcome;
  }

  #ask(kind: LaneKind, question: Question, untilMs: number): Promise<Outcome> {
    return this.#up?.client.ask(kind, question, untilMs) ?? Promise.resolve(unavailable);
  }

  /** Many asks share a message; each names the span of its own. */
  async #askTraced(kind: LaneKind, question: Question, untilMs: number): Promise<Outcome> {
    const { tracer } = this.#options;
    const about = { name: `ask ${question.type}`, kind: 'client', attributes: {} } as const;
    const span = tracer?.below(question.trace, about);
    const asked = span === undefined ? question : { ...question, trace: span.trace };
    const outcome = await this.#ask(kind, asked, untilMs);
    span?.end({ attributes: { 'longshore.outcome': outcome.code }, isError: outcomeStatus[outcome.code] >= 500 });
    return outcome;
  }

  partitions(): number | undefined {
    return this.#up?.client.partitions;
  }

  /** The ranges of containers' addresses; `undefined` until the cluster is known. */
  tenantRanges(): TenantRanges | undefined {
    return this.#up?.ranges;
  }

  queued(kind: LaneKind): number {
    return this.#up?.client.queued(kind) ?? 0;
  }

  knowledgeOf(tenant: TenantId): Knowledge {
    return this.#up?.feed.knowledgeOf(tenant) ?? 'unheard';
  }

  /** Tenants whose tokens are refused because their revocations are unknown. */
  tenantsRefused(): number {
    return this.#up?.feed.tenantsRefused() ?? 0;
  }

  /** Applies a revocation that its owner has committed, and notifies the other gateways. */
  announceRevocation(revocation: Revocation): void {
    if (this.#up === undefined) return;
    const { client, feed, shared } = this.#up;
    feed.add(revocation);
    shared?.ring(client.partitionFor(revocation.tenant));
  }

  #connectRedis(clusterId: string, feed: RevocationFeed): SharedMemory | undefined {
    const { redis: access, tenantRates, clock, log } = this.#options;
    if (access === undefined) {
      log.warn('redis_missing', { effect: 'rate limits are per gateway; revocations spread within a minute' });
      return undefined;
    }
    if (access.password === undefined) {
      log.warn('redis_unprotected', {
        effect: 'any client that reaches Redis can slow tenants down; set a password: docs/deploy.md, Redis',
      });
    }
    return connectSharedMemory({
      access,
      clusterId,
      tenantRates,
      clock,
      log,
      onDoorbell: (partition) => feed.ring(partition),
      onDoorbellsLost: () => feed.ringAll(),
    });
  }
}
