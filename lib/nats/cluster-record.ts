/**
 * The cluster's record, as every program reads it: bucket `cluster`, key `cluster`
 * (schemas/records/cluster.ts).
 */
import type { NatsConnection, Subscription } from '@nats-io/transport-node';
import { bucketPrefix, buckets, bucketStream } from '../../schemas/records/buckets.ts';
import {
  ClusterEntry,
  clusterKey,
  incarnationOf,
  isRestoring,
  isSameCluster,
  type Cluster,
} from '../../schemas/records/cluster.ts';
import { limits } from '../../schemas/limits.ts';
import { jitter, sleep } from '../backoff.ts';
import { decoder } from '../decode.ts';
import { readLast } from './kv-keys.ts';

export const clusterStream = bucketStream(buckets.cluster.bucket);
export const clusterSubject = bucketPrefix(buckets.cluster.bucket) + clusterKey;

const decodeEntry = decoder(ClusterEntry);

/**
 * What stands under the cluster's key, and its revision; 0 and undefined where there is nothing, or
 * no bucket. `api`: the subject that takes the question, where it is not JetStream's own.
 * @throws where NATS can't be asked, or the record is of a format not ours.
 */
export async function readClusterEntry(
  nc: NatsConnection,
  api?: string,
): Promise<{ readonly revision: number; readonly entry: ClusterEntry | undefined }> {
  const { revision, value } = await readLast(nc, clusterStream, clusterSubject, limits.clusterReadMs, api);
  return { revision, entry: value === null ? undefined : decodeEntry(Buffer.from(value)) };
}

const describe = (entry: ClusterEntry | undefined): string =>
  entry === undefined
    ? 'there is none'
    : isRestoring(entry)
      ? 'it is being restored'
      : `there is ${entry.id}, incarnation ${incarnationOf(entry)}`;

const isOther = (entry: ClusterEntry | undefined, joined: Cluster): boolean =>
  entry === undefined || isRestoring(entry) || !isSameCluster(entry, joined);

/**
 * What is written under the cluster's key, as it is written; a restore writes while no actors
 * process answers reads.
 */
function hearOther(nc: NatsConnection, joined: Cluster, onHeard: (entry: ClusterEntry) => void): Subscription {
  return nc.subscribe(clusterSubject, {
    callback: (error, { data }) => {
      if (error !== null) return;
      try {
        const entry = decodeEntry(data);
        if (isOther(entry, joined)) onHeard(entry);
      } catch {
        // Of a format not ours: reading the record says so.
      }
    },
  });
}

/**
 * Looks again and again whether it is still the cluster that was joined; calls `onOther` once where
 * it is not: a server that was wiped, restored or mistaken for another answers as if nothing had
 * happened, and what a program keeps in memory is then of a past that never was. A cluster that
 * does not answer is waited for. `api`: as for `readClusterEntry`; what takes the question may be
 * away while the cluster changes, so the change itself is listened for too.
 */
export async function watchCluster(
  nc: NatsConnection,
  joined: Cluster,
  onOther: (error: Error) => void,
  signal: AbortSignal,
  api?: string,
): Promise<void> {
  const change = new AbortController();
  let heard: ClusterEntry | undefined;
  const onHeard = (entry: ClusterEntry): void => {
    heard = entry;
    change.abort();
  };
  const subscription = api === undefined ? undefined : hearOther(nc, joined, onHeard);
  try {
    const found = await otherCluster(nc, joined, AbortSignal.any([signal, change.signal]), api);
    if (signal.aborted) return;
    const now = describe(heard ?? found);
    onOther(new Error(`joined ${joined.id}, incarnation ${incarnationOf(joined)}, and now ${now}`));
  } finally {
    subscription?.unsubscribe();
  }
}

/**
 * What is there in the place of the cluster that was joined, once it is; undefined where there is
 * nothing, or when aborted.
 */
async function otherCluster(
  nc: NatsConnection,
  joined: Cluster,
  signal: AbortSignal,
  api: string | undefined,
): Promise<ClusterEntry | undefined> {
  let absences = 0;
  while (!signal.aborted) {
    await sleep(jitter(limits.clusterWatchMs), signal);
    const found = await readClusterEntry(nc, api).catch(() => undefined);
    if (signal.aborted || found === undefined) continue;
    const { entry } = found;
    // A server that has just come back may not know yet what there is.
    absences = entry === undefined ? absences + 1 : 0;
    if (absences > 0 && absences < limits.clusterAbsences) continue;
    if (isOther(entry, joined)) return entry;
  }
  return undefined;
}
