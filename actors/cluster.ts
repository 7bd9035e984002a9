/**
 * The cluster's streams and buckets in JetStream. The first process makes them; every process
 * checks them before it does anything else.
 */
import { jetstreamManager, type JetStreamManager, type StreamConfig } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Answers } from '../lib/nats/answers.ts';
import { jittered } from '../lib/time/backoff.ts';
import { retry } from '../lib/time/retry.ts';
import { clusterSubject, readClusterEntry } from '../lib/nats/cluster-record.ts';
import { DecodeError } from '../lib/decode.ts';
import { compareAndSet } from '../lib/nats/kv-keys.ts';
import type { Log } from '../lib/log.ts';
import { bucketPrefix, buckets, bucketStream, journalBuckets, streams } from '../schemas/records/buckets.ts';
import { isRestoring, type Cluster } from '../schemas/records/cluster.ts';
import { limits } from '../schemas/limits.ts';
import { MiB, seconds } from '../schemas/limits/units.ts';
import Type from 'typebox';
import { decoder } from '../lib/decode.ts';

/** About two million lines. */
const auditStreamBytes = 1024 * MiB;
/** The time to ask JetStream for its API level and its streams. */
const natsInfoMs = 2 * seconds;

const millisToNanos = (ms: number): number => ms * 1_000_000;

/**
 * nats-server 2.12 brings atomic batches, per-message TTL, and the fence by another subject. Older
 * servers silently ignore them.
 */
const apiLevelNeeded = 2;

export class ClusterError extends Error {
  constructor(what: string) {
    super(what);
    this.name = 'ClusterError';
  }
}

const decodeInfo = decoder(
  Type.Object({
    api: Type.Optional(Type.Object({ level: Type.Optional(Type.Integer()) })),
    error: Type.Optional(Type.Object({ description: Type.String() })),
  }),
);

/**
 * @throws ClusterError if the server is too old, or its limit of a message's size is too low;
 * another error if JetStream does not answer, or not yet.
 */
export async function checkServer(nc: NatsConnection): Promise<void> {
  const answer = await nc.request('$JS.API.INFO', '', { timeout: natsInfoMs });
  const info = decodeInfo(answer.data);
  if (info.error !== undefined) throw new Error(`JetStream: ${info.error.description}`);
  const level = info.api?.level ?? 0;
  if (level < apiLevelNeeded) {
    throw new ClusterError(`nats-server 2.12 or newer is needed: JetStream API level ${level}, not ${apiLevelNeeded}`);
  }
  const fault = payloadFault(nc);
  if (fault !== undefined) throw fault;
}

/**
 * The error if the server of the connection can't take every entry of a journal; `undefined` if it
 * can, or if there is no connection now.
 */
function payloadFault({ info }: NatsConnection): ClusterError | undefined {
  if (info === undefined || info.max_payload >= limits.natsPayloadBytes) return undefined;
  return new ClusterError(
    `the NATS server accepts messages of up to ${info.max_payload} bytes; set max_payload to ${limits.natsPayloadBytes} or more`,
  );
}

/**
 * Keeps checking the limit of a message's size, and calls `onUnfit` once if it is too low: the
 * server's configuration may change, or the connection may move to another server. An entry that is
 * larger than any message would hold up all commits for ever.
 */
export async function watchPayload(
  nc: NatsConnection,
  onUnfit: (error: Error) => void,
  signal: AbortSignal,
): Promise<void> {
  const look = (): Promise<ClusterError | undefined> => Promise.resolve(payloadFault(nc));
  const fault = await retry(look, { pauseMs: () => limits.clusterWatchMs, signal });
  if (fault !== undefined) onUnfit(fault);
}

/**
 * Asks for all names at once. Each stream's own leader would have to answer for that stream, and
 * after a lost server some have none for seconds.
 */
async function streamNames(nc: NatsConnection): Promise<ReadonlySet<string>> {
  const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: natsInfoMs });
  const names = new Set<string>();
  for await (const name of jsm.streams.names()) names.add(name);
  return names;
}

interface Streams {
  readonly jsm: JetStreamManager;
  readonly names: ReadonlySet<string>;
}

/**
 * Makes a stream that does not exist. An existing stream keeps its configuration, which operators
 * may change.
 */
async function ensureStream({ jsm, names }: Streams, config: Partial<StreamConfig> & { name: string }): Promise<void> {
  if (!names.has(config.name)) await jsm.streams.add(config);
}

const keyValueStream = (bucket: string, replicas: number): Partial<StreamConfig> & { name: string } => ({
  name: bucketStream(bucket),
  subjects: [`${bucketPrefix(bucket)}>`],
  storage: 'file',
  num_replicas: replicas,
  max_msgs_per_subject: 1,
  discard: 'new',
  allow_direct: true,
  allow_rollup_hdrs: true,
  deny_delete: true,
  allow_msg_ttl: true,
  allow_atomic: true,
});

async function ensureStreams(there: Streams, partitions: number, replicas: number): Promise<void> {
  await ensureStream(there, keyValueStream(buckets.members.bucket, replicas));
  for (let partition = 0; partition < partitions; partition++) {
    await ensureStream(there, keyValueStream(buckets.state.bucket(partition), replicas));
  }
  for (let number = 0; number < journalBuckets; number++) {
    await ensureStream(there, keyValueStream(buckets.journal.bucket(number), replicas));
  }
  const shared = ({ name, subjects }: (typeof streams)[keyof typeof streams]) =>
    ({
      name,
      subjects: Array.from<string>(subjects),
      storage: 'file',
      num_replicas: replicas,
      discard: 'old',
      allow_direct: true,
    }) as const;
  await ensureStream(there, {
    ...shared(streams.logs),
    max_age: millisToNanos(limits.logAgeMs),
    max_bytes: limits.logStreamBytes,
    max_msgs_per_subject: limits.logBlocksPerContainer,
  });
  await ensureStream(there, {
    ...shared(streams.events),
    max_age: millisToNanos(limits.eventAgeMs),
    max_bytes: limits.eventStreamBytes,
    max_msgs_per_subject: limits.eventsPerContainer,
    allow_atomic: true,
  });
  await ensureStream(there, {
    ...shared(streams.audit),
    max_age: millisToNanos(limits.auditAgeMs),
    max_bytes: auditStreamBytes,
    allow_atomic: true,
  });
  await ensureStream(there, {
    ...shared(streams.usage),
    max_age: millisToNanos(limits.usageAgeMs),
    max_bytes: limits.usageStreamBytes,
    max_msgs_per_subject: 1,
  });
}

/**
 * Checks the servers and joins the cluster. Waits as long as they are not ready: they do not answer
 * while they elect a leader, or while another process makes the streams.
 * @throws ClusterError if waiting does not help.
 */
export async function joinWhenReady(nc: NatsConnection, options: JoinOptions, log: Log): Promise<Cluster> {
  const attempt = async (): Promise<Cluster> => {
    options.answers?.asked();
    await checkServer(nc);
    options.answers?.heard();
    return await joinCluster(nc, options);
  };
  return retry(attempt, {
    pauseMs: jittered({ minMs: limits.retryMinMs, maxMs: limits.retryMaxMs }),
    onFailure: (error) => {
      const isFinal = error instanceof ClusterError || error instanceof DecodeError;
      if (isFinal || nc.isClosed()) throw error;
      log.warn('cluster_awaited', { error });
    },
  });
}

export interface JoinOptions {
  readonly partitions: number;
  readonly replicas: number;
  /** Range in which containers get IPv4 addresses; absent if they get none. */
  readonly tenantIpv4?: string | undefined;
  readonly newId: () => string;
  /** The cluster that must exist already. By default, any cluster, or a new one. */
  readonly expectedId?: string | undefined;
  /** Tracks the answers of this connection. */
  readonly answers?: Answers;
}

/**
 * Reads the cluster's record, or initialises a cluster if there is none; of two processes that try,
 * one wins.
 * @throws ClusterError if the cluster has another number of partitions than `LONGSHORE_PARTITIONS`
 * says, and while it is being restored.
 */
export async function joinCluster(nc: NatsConnection, options: JoinOptions): Promise<Cluster> {
  const { partitions, replicas, expectedId, tenantIpv4 } = options;
  const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: limits.jetstreamSetupMs });
  if (expectedId !== undefined) await expectCluster(nc, expectedId);
  const there = { jsm, names: await streamNames(nc) };
  await ensureStream(there, keyValueStream(buckets.cluster.bucket, replicas));
  const stored = await readCluster(nc);
  if (stored === undefined) {
    const record: Cluster = { id: options.newId(), partitions, format: 1, incarnation: 0, journals: true };
    await compareAndSet(nc, clusterSubject, JSON.stringify(record), 0, { timeoutMs: limits.clusterReadMs });
  }
  const cluster = await withRange(nc, tenantIpv4);
  if (cluster.partitions !== partitions) {
    throw new ClusterError(
      `this cluster has ${cluster.partitions} partitions, and keeps them; LONGSHORE_PARTITIONS says ${partitions}`,
    );
  }
  // A restore brings these while the cluster serves: a stream of that name would be in its way.
  const names = new Set([...there.names, ...(cluster.history?.streams ?? [])]);
  await ensureStreams({ jsm, names }, partitions, replicas);
  return cluster;
}

/** The cluster, which keeps the range that it was given first. */
async function withRange(nc: NatsConnection, tenantIpv4: string | undefined): Promise<Cluster> {
  const { entry: cluster, revision } = await readClusterEntry(nc);
  if (cluster === undefined || isRestoring(cluster)) throw new ClusterError('the cluster record could not be written');
  const has = cluster.tenantIpv4;
  if (has === tenantIpv4) return cluster;
  if (has !== undefined) {
    throw new ClusterError(
      `this cluster gives its containers addresses of ${has}, and keeps them; TENANT_IPV4 says ${tenantIpv4 ?? 'off'}`,
    );
  }
  const given = { ...cluster, ...(tenantIpv4 === undefined ? {} : { tenantIpv4 }) };
  await compareAndSet(nc, clusterSubject, JSON.stringify(given), revision, { timeoutMs: limits.clusterReadMs });
  return withRange(nc, tenantIpv4);
}

async function expectCluster(nc: NatsConnection, expectedId: string): Promise<void> {
  const stored = await readCluster(nc);
  if (stored?.id === expectedId) return;
  const what =
    stored === undefined ? 'there is no cluster on these servers' : `the cluster of these servers is ${stored.id}`;
  throw new ClusterError(`${what}; LONGSHORE_CLUSTER_ID says ${expectedId}`);
}

async function readCluster(nc: NatsConnection): Promise<Cluster | undefined> {
  const { entry } = await readClusterEntry(nc);
  if (entry !== undefined && isRestoring(entry)) {
    throw new ClusterError(
      'this cluster is being restored; if the restore was interrupted, run it again (docs/backup.md)',
    );
  }
  return entry;
}
