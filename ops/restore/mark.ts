/**
 * The mark of a running restore, in place of the cluster's record. The restore renews it by
 * compare-and-set at its last revision. So one of two concurrent restores finds that it is not
 * alone, and a mark that no longer changes belongs to an interrupted restore.
 */
import { randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import { clusterSubject, readClusterEntry } from '../../lib/nats/cluster-record.ts';
import { compareAndSet } from '../../lib/nats/kv-keys.ts';
import { sleep } from '../../lib/time/backoff.ts';
import { every } from '../../lib/time/every.ts';
import { isRestoring, type Cluster, type Restoring } from '../../schemas/records/cluster.ts';
import { BackupError } from '../backup/error.ts';
import { limits } from '../../schemas/limits.ts';

/** A restore renews its mark in the cluster record this often. */
const restoreMarkRenewMs = 500;

export interface RestoreMark {
  /**
   * Reads the mark. Called before each step that deletes or writes: a process that was suspended
   * may wake up when another restore has ended long ago.
   * @throws BackupError if the mark is not of this restore any more
   */
  check(): Promise<void>;
  /** Replaces the mark by the cluster's record. */
  replace(record: Cluster): Promise<void>;
  /** Stops the renewals and leaves the mark in place. */
  stop(): Promise<void>;
}

const write = (nc: NatsConnection, entry: Restoring | Cluster, revision: number): Promise<number | undefined> =>
  compareAndSet(nc, clusterSubject, JSON.stringify(entry), revision, { timeoutMs: limits.restoreMarkWriteMs });

const slept = 'this restore stood still for too long, and another may have begun: restore again';
const another = (): BackupError => new BackupError('another restore of this cluster is running: wait until it ends');

/**
 * Marks the cluster as being restored.
 * @throws BackupError if another restore is running.
 */
export async function markRestoring(
  nc: NatsConnection,
  about: Required<Pick<Restoring, 'cluster' | 'above'>>,
): Promise<RestoreMark> {
  const { entry, revision: found } = await readClusterEntry(nc);
  if (entry !== undefined && isRestoring(entry)) {
    await sleep(limits.restoreMarkStillMs);
    if ((await readClusterEntry(nc)).revision !== found) throw another();
  }
  const by = randomUUID();
  let renewal = 0;
  const mark = (): Restoring => ({ restoring: true, renewal, by, ...about });
  let revision = (await write(nc, mark(), found)) ?? raise(another());
  const ending = new AbortController();
  const lost = new AbortController();

  const renew = async (): Promise<void> => {
    renewal += 1;
    revision = (await write(nc, mark(), revision)) ?? raise(another());
  };
  const renewing = every(() => restoreMarkRenewMs, renew, ending.signal);
  renewing.catch((error: unknown) => lost.abort(error));
  const stop = async (): Promise<void> => {
    ending.abort();
    await renewing.catch(() => undefined);
  };
  return {
    check: async () => {
      const askedMs = performance.now();
      const { entry } = await readClusterEntry(nc);
      lost.signal.throwIfAborted();
      const isOurs = entry !== undefined && isRestoring(entry) && entry.by === by;
      if (!isOurs) throw another();
      // After so long another restore may have taken the mark for an interrupted one's.
      if (performance.now() - askedMs > limits.restoreMarkStillMs) throw new BackupError(slept);
    },
    replace: async (record) => {
      await stop();
      lost.signal.throwIfAborted();
      if ((await write(nc, record, revision)) === undefined) throw another();
    },
    stop,
  };
}

function raise(error: Error): never {
  throw error;
}
