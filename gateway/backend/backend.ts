/**
 * Parts of the gateway that depend on the cluster: its record, the revocations, Redis. They are
 * connected while the process already listens but is not ready; until then asks get `unavailable`.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import type { Answers } from '../../lib/nats/answers.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { watchCluster } from '../../lib/nats/cluster-record.ts';
import type { Log } from '../../lib/log.ts';
import type { TenantId } from '../../schemas/ids.ts';
import { tenantRangesOf, type TenantRanges } from '../../schemas/tenant-network.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import type { Revocation } from '../../schemas/api/tenant.ts';
import { RevocationFeed, type Knowledge } from '../auth/revocation-feed.ts';
import type { Revocations } from '../auth/revocations.ts';
import { waitForCluster } from './cluster.ts';
import type { PartitionClient } from '../../lib/rpc/partition-client.ts';
import { probePartitions } from './prober.ts';
import type { RateLimiter } from '../auth/rate-limits.ts';
import { connectSharedMemory, type RedisAccess, type SharedMemory } from '../auth/redis.ts';

/** A gateway is ready when the owner of a partition has answered it within this time. */
const gatewayAnsweredMs = 7500;

export interface BackendOptions {
  /** Opened when the cluster is known. */
  readonly client: PartitionClient;
  /** `undefined` without Redis. */
  readonly redis: RedisAccess | undefined;
  /** The cluster that must be on the NATS servers; `undefined` allows any. */
  readonly expectedId: string | undefined;
  readonly revocations: Revocations;
  readonly tenantRates: RateLimiter;
  readonly clock: Clock;
  readonly log: Log;
  /** Counts the answers on the connection that `start` gets. */
  readonly answers: Answers;
  /**
   * The NATS servers now hold another cluster: everything that the gateway knows of the old one is
   * void.
   */
  readonly onOtherCluster: (error: Error) => void;
}

interface Up {
  readonly feed: RevocationFeed;
  readonly shared: SharedMemory | undefined;
  readonly ranges: TenantRanges;
  readonly stopProbing: () => void;
}

export class Backend {
  readonly #options: BackendOptions;
  readonly #stop = new AbortController();
  #up: Up | undefined;

  constructor(options: BackendOptions) {
    this.#options = options;
  }

  /** Resolves when everything is connected, however long that takes. */
  async start(nc: NatsConnection): Promise<void> {
    const { client, clock, log, answers, revocations, expectedId, onOtherCluster } = this.#options;
    const cluster = await waitForCluster(nc, { log, expectedId, answers }, this.#stop.signal);
    if (cluster === undefined) return;
    const { partitions } = cluster;
    log.info('cluster_found', { cluster: cluster.id, partitions });
    client.open(nc, partitions);
    const feed = new RevocationFeed(client, revocations, { clock, log });
    const shared = this.#connectRedis(cluster.id, feed);
    this.#up = { feed, shared, ranges: tenantRangesOf(cluster), stopProbing: probePartitions(client, clock) };
    feed.start();
    void watchCluster(nc, cluster, onOtherCluster, this.#stop.signal, subjects.read('cluster'));
  }

  stop(): void {
    this.#stop.abort();
    this.#up?.stopProbing();
    this.#up?.feed.stop();
    this.#up?.shared?.stop();
    this.#options.client.stop();
  }

  /** A connection alone is not enough: its server may be cut off from the others. */
  ready(): boolean {
    if (this.#up === undefined) return false;
    const { client } = this.#options;
    const { feed } = this.#up;
    return client.connected() && client.unansweredMs() <= gatewayAnsweredMs && feed.complete();
  }

  /** `undefined` until the cluster is known. */
  partitions(): number | undefined {
    return this.#up === undefined ? undefined : this.#options.client.partitions;
  }

  /** The ranges of containers' addresses; `undefined` until the cluster is known. */
  tenantRanges(): TenantRanges | undefined {
    return this.#up?.ranges;
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
    const { feed, shared } = this.#up;
    feed.add(revocation);
    shared?.ring(this.#options.client.partitionFor(revocation.tenant));
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
