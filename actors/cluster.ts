/** What a cluster is made of in JetStream: made once, and looked at by every process before it does anything. */
import {
  JetStreamApiCodes,
  JetStreamApiError,
  jetstreamManager,
  type JetStreamManager,
  type StreamConfig,
} from '@nats-io/jetstream';
import { headers, type NatsConnection } from '@nats-io/transport-node';
import { decoder } from '../lib/decode.ts';
import { buckets, streams } from '../schemas/buckets.ts';
import { Cluster, clusterKey } from '../schemas/cluster.ts';
import { limits } from '../schemas/limits.ts';

const millisToNanos = (ms: number): number => ms * 1_000_000;
const clusterStream = `KV_${buckets.cluster.bucket}`;
const clusterSubject = `$KV.${buckets.cluster.bucket}.${clusterKey}`;
const decodeCluster = decoder(Cluster);

/** Atomic batches, per-message TTL and a fence by another subject: nats-server 2.12. Older ones ignore them in silence. */
const apiLevelNeeded = 2;

/** A journal entry and a batch of asks fit into it, with what the protocol adds. The server's own default. */
const payloadNeededBytes = 1024 * 1024;

export class ClusterError extends Error {
  constructor(what: string) {
    super(what);
    this.name = 'ClusterError';
  }
}

/** @throws ClusterError where the server is too old, has no JetStream, or takes no message as large as ours. */
export async function checkServer(nc: NatsConnection): Promise<void> {
  const answer = await nc.request('$JS.API.INFO', '', { timeout: 5000 });
  const info = answer.json<{ api?: { level?: number }; error?: { description: string } }>();
  if (info.error !== undefined) throw new ClusterError(`JetStream: ${info.error.description}`);
  const level = info.api?.level ?? 0;
  if (level < apiLevelNeeded) {
    throw new ClusterError(`nats-server 2.12 or newer is needed: JetStream API level ${level}, not ${apiLevelNeeded}`);
  }
  const payload = nc.info?.max_payload ?? 0;
  if (payload < payloadNeededBytes) {
    throw new ClusterError(`the NATS server takes messages of ${payload} bytes; ${payloadNeededBytes} are needed`);
  }
}

/** Makes a stream that is not there; one that is there keeps its configuration, which is the operator's to change. */
async function ensureStream(jsm: JetStreamManager, config: Partial<StreamConfig> & { name: string }): Promise<void> {
  try {
    await jsm.streams.info(config.name);
  } catch (error) {
    const isAbsent = error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound;
    if (!isAbsent) throw error;
    await jsm.streams.add(config);
  }
}

const keyValueStream = (bucket: string, replicas: number): Partial<StreamConfig> & { name: string } => ({
  name: `KV_${bucket}`,
  subjects: [`$KV.${bucket}.>`],
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

async function ensureStreams(jsm: JetStreamManager, partitions: number, replicas: number): Promise<void> {
  for (let partition = 0; partition < partitions; partition++) {
    await ensureStream(jsm, keyValueStream(buckets.state.bucket(partition), replicas));
  }
  await ensureStream(jsm, {
    name: streams.logs.name,
    subjects: [...streams.logs.subjects],
    storage: 'file',
    num_replicas: replicas,
    discard: 'old',
    max_age: millisToNanos(limits.logAgeMs),
    max_bytes: limits.logStreamBytes,
    max_msgs_per_subject: limits.logBlocksPerContainer,
    allow_direct: true,
  });
  await ensureStream(jsm, {
    name: streams.events.name,
    subjects: [...streams.events.subjects],
    storage: 'file',
    num_replicas: replicas,
    discard: 'old',
    max_age: millisToNanos(limits.eventAgeMs),
    max_bytes: limits.eventStreamBytes,
    max_msgs_per_subject: limits.eventsPerContainer,
    allow_direct: true,
    allow_atomic: true,
  });
}

/**
 * Reads the cluster's record, or initialises a cluster where there is none: of two processes that try, one wins.
 * @throws ClusterError where the cluster has another number of partitions than this process was told.
 */
export async function joinCluster(
  nc: NatsConnection,
  options: { readonly partitions: number; readonly replicas: number; readonly newId: () => string },
): Promise<Cluster> {
  const { partitions, replicas } = options;
  const jsm = await jetstreamManager(nc, { timeout: 10_000 });
  await ensureStream(jsm, keyValueStream(buckets.cluster.bucket, replicas));
  const stored = await readCluster(jsm);
  if (stored === undefined) {
    const record: Cluster = { id: options.newId(), partitions, format: 1 };
    const head = headers();
    head.set('Nats-Expected-Last-Subject-Sequence', '0');
    await nc.request(clusterSubject, JSON.stringify(record), { headers: head, timeout: 5000 });
  }
  const cluster = stored ?? (await readCluster(jsm));
  if (cluster === undefined) throw new ClusterError('the cluster record could not be written');
  if (cluster.partitions !== partitions) {
    throw new ClusterError(
      `this cluster has ${cluster.partitions} partitions, and keeps them; PARTITIONS says ${partitions}`,
    );
  }
  await ensureStreams(jsm, partitions, replicas);
  return cluster;
}

async function readCluster(jsm: JetStreamManager): Promise<Cluster | undefined> {
  const message = await jsm.streams.getMessage(clusterStream, { last_by_subj: clusterSubject });
  return message === null ? undefined : decodeCluster(message.data);
}
