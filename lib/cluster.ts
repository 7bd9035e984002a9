/** The cluster's record, as every program reads it: bucket `cluster`, key `cluster` (schemas/cluster.ts). */
import type { NatsConnection } from '@nats-io/transport-node';
import { bucketPrefix, buckets, bucketStream } from '../schemas/buckets.ts';
import {
  ClusterEntry,
  clusterKey,
  incarnationOf,
  isRestoring,
  isSameCluster,
  type Cluster,
} from '../schemas/cluster.ts';
import { limits } from '../schemas/limits.ts';
import { jitter, sleep } from './backoff.ts';
import { decoder } from './decode.ts';
import { readLast } from './jetstream-keys.ts';

export const clusterStream = bucketStream(buckets.cluster.bucket);
export const clusterSubject = bucketPrefix(buckets.cluster.bucket) + clusterKey;

const decodeEntry = decoder(ClusterEntry);

/**
 * What stands under the cluster's key, and its revision; 0 and undefined where there is nothing, or no bucket.
 * @throws where NATS can't be asked, or the record is of a format not ours.
 */
export async function readClusterEntry(
  nc: NatsConnection,
): Promise<{ readonly revision: number; readonly entry: ClusterEntry | undefined }> {
  const { revision, value } = await readLast(nc, clusterStream, clusterSubject, limits.clusterReadMs);
  return { revision, entry: value === null ? undefined : decodeEntry(Buffer.from(value)) };
}

const describe = (entry: ClusterEntry | undefined): string =>
  entry === undefined
    ? 'there is none'
    : isRestoring(entry)
      ? 'it is being restored'
      : `there is ${entry.id}, incarnation ${incarnationOf(entry)}`;

/**
 * Looks again and again whether it is still the cluster that was joined; calls `onOther` once where it is not: a server that was
 * wiped, restored or mistaken for another answers as if nothing had happened, and what a program keeps in memory is then of a
 * past that never was. A cluster that does not answer is waited for.
 */
export async function watchCluster(
  nc: NatsConnection,
  joined: Cluster,
  onOther: (error: Error) => void,
  signal: AbortSignal,
): Promise<void> {
  let absences = 0;
  while (!signal.aborted) {
    await sleep(jitter(limits.clusterWatchMs), signal);
    const found = await readClusterEntry(nc).catch(() => undefined);
    if (signal.aborted || found === undefined) continue;
    const { entry } = found;
    // A server that has just come back may not know yet what there is.
    absences = entry === undefined ? absences + 1 : 0;
    if (absences > 0 && absences < limits.clusterAbsences) continue;
    if (entry !== undefined && !isRestoring(entry) && isSameCluster(entry, joined)) continue;
    return onOther(new Error(`joined ${joined.id}, incarnation ${incarnationOf(joined)}, and now ${describe(entry)}`));
  }
}
