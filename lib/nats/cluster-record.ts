/**
 * The cluster's record as every program reads it: bucket `cluster`, key `cluster`
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
  refusalOf,
  type Cluster,
} from '../../schemas/records/cluster.ts';
import { limits } from '../../schemas/limits.ts';
import { jitter, sleep, withAbort } from '../time/backoff.ts';
import { DecodeError, decoder } from '../decode.ts';
import { isNoResponders, readLast } from './kv-keys.ts';

/** Times in a row that the record must be missing to count as deleted. */
const clusterAbsences = 10;

export const clusterStream = bucketStream(buckets.cluster.bucket);
export const clusterSubject = bucketPrefix(buckets.cluster.bucket) + clusterKey;

const decodeEntry = decoder(ClusterEntry);

/**
 * The value of the cluster's key and its revision; undefined and 0 if there is no key, or no
 * bucket. `api`: the subject to ask, if it is not JetStream's own.
 * @throws if NATS does not answer.
 * @throws DecodeError if the record has an unknown format, or is of a cluster that is too old.
 */
export async function readClusterEntry(
  nc: NatsConnection,
  api?: string,
): Promise<{ readonly revision: number; readonly entry: ClusterEntry | undefined }> {
  const { revision, value } = await readLast(nc, clusterStream, clusterSubject, limits.clusterReadMs, api);
  const entry = value === null ? undefined : decodeEntry(Buffer.from(value));
  const refusal = entry === undefined || isRestoring(entry) ? undefined : refusalOf(entry);
  if (refusal !== undefined) throw new DecodeError(refusal);
  return { revision, entry };
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
 * Publishes each new value of the cluster's key: a restore writes it while no actors process
 * answers reads. The server may refuse what it forwards, as from a restore that another overtook.
 */
function subscribeToOther(nc: NatsConnection, joined: Cluster, onHeard: (entry: ClusterEntry) => void): Subscription {
  return nc.subscribe(clusterSubject, {
    callback: (error, { data }) => {
      if (error !== null) return;
      try {
        const entry = decodeEntry(data);
        if (isOther(entry, joined)) onHeard(entry);
      } catch {
        // The record has an unknown format; reading it reports that.
      }
    },
  });
}

/**
 * Keeps checking that this is still the cluster that was joined, and calls `onOther` once if not. A
 * server that was wiped, restored or replaced answers as if nothing had happened, while the program
 * has records of the earlier cluster in memory. While the cluster does not answer, this waits.
 * `api`: as for `readClusterEntry`; as no process may answer there while the cluster changes, this
 * also listens for the change itself.
 */
export async function watchCluster(
  nc: NatsConnection,
  joined: Cluster,
  onOther: (error: Error) => void,
  signal: AbortSignal,
  api?: string,
): Promise<void> {
  let heard: ClusterEntry | undefined;
  const watch = async (change: AbortController): Promise<ClusterEntry | undefined> => {
    const onHeard = (entry: ClusterEntry): void => {
      void readClusterEntry(nc, api).then(
        ({ entry: stored }) => {
          if (isOther(stored, joined)) end(stored);
        },
        // Without actors nobody can read it, and nobody serves this cluster. A late answer is no
        // answer: the watch asks again soon.
        (error: unknown) => {
          if (isNoResponders(error)) end(entry);
        },
      );
    };
    const end = (entry: ClusterEntry | undefined): void => {
      heard = entry;
      change.abort();
    };
    const subscription = api === undefined ? undefined : subscribeToOther(nc, joined, onHeard);
    try {
      return await otherCluster(nc, joined, change.signal, api);
    } finally {
      subscription?.unsubscribe();
    }
  };
  const found = await withAbort([signal], watch);
  if (signal.aborted) return;
  const now = describe(heard ?? found);
  onOther(new Error(`joined ${joined.id}, incarnation ${incarnationOf(joined)}, and now ${now}`));
}

/**
 * Waits until another value has replaced the cluster that was joined, and returns it; undefined:
 * there is none, or the signal aborted.
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
    // A server that has just come back may not have the record yet.
    absences = entry === undefined ? absences + 1 : 0;
    if (absences > 0 && absences < clusterAbsences) continue;
    if (isOther(entry, joined)) return entry;
  }
  return undefined;
}
