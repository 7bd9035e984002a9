/** The cluster's record, which actors write once when they initialise it: without it the gateway knows no partitions. */
import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { jitter, sleep } from '../lib/backoff.ts';
import { decoder } from '../lib/decode.ts';
import type { Log } from '../lib/log.ts';
import { buckets } from '../schemas/buckets.ts';
import { Cluster, clusterKey } from '../schemas/cluster.ts';

const pollMs = 500;
const readDeadlineMs = 2000;
const saidEvery = 20;

const decodeCluster = decoder(Cluster);

/** Undefined while nobody has written it. Rejects where NATS can't be asked, or the record is of a format not ours. */
export async function readCluster(nc: NatsConnection): Promise<Cluster | undefined> {
  const { bucket } = buckets.cluster;
  const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: readDeadlineMs });
  const message = await jsm.streams.getMessage(`KV_${bucket}`, { last_by_subj: `$KV.${bucket}.${clusterKey}` });
  return message === null ? undefined : decodeCluster(message.data);
}

/** Waits for the record as long as it takes; undefined when aborted. */
export async function waitForCluster(nc: NatsConnection, log: Log, signal: AbortSignal): Promise<Cluster | undefined> {
  for (let attempt = 0; !signal.aborted; attempt++) {
    try {
      const cluster = await readCluster(nc);
      if (cluster !== undefined) return cluster;
      if (attempt % saidEvery === 0) log.info('cluster_awaited');
    } catch (error) {
      // Most often: no actors process has been here yet, and there is no bucket.
      if (attempt % saidEvery === 0) log.info('cluster_awaited', { error });
    }
    await sleep(jitter(pollMs), signal);
  }
  return undefined;
}
