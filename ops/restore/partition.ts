/** Fences off the former owner of a restored partition, and loads it once, as an owner would. */
import { randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import { records } from '../../actors/domain/domain.ts';
import { createJetStreamStore } from '../../actors/runtime/store/jetstream-store.ts';
import { readMark, readPartition } from '../../actors/runtime/journal/load.ts';
import { LoadError } from '../../actors/runtime/journal/load-error.ts';
import type { Store } from '../../actors/runtime/store/store.ts';
import { isNoResponders } from '../../lib/nats/kv-keys.ts';
import { retry, type Retrying } from '../../lib/time/retry.ts';
import type { HostRecord } from '../../schemas/api/host.ts';
import type { HostKey } from '../../schemas/ids.ts';
import { buckets } from '../../schemas/records/buckets.ts';
import { BackupError } from '../backup/error.ts';
import { restoredCommits } from './journals.ts';

/** The pause between attempts to move an epoch. */
const restorePauseMs = 500;

/** Attempts to fence off and load a restored partition; its stream may lack a leader for now. */
const restoreAttempts = 20;

export type LoadedPartition =
  | {
      readonly kind: 'loads';
      readonly lastEntry: number;
      readonly quarantined: readonly string[];
      /** Those that have enrolled and were not removed. */
      readonly hosts: readonly HostKey[];
    }
  /** No owner will serve it (runbook: a partition refuses to load). */
  | { readonly kind: 'refuses'; readonly why: string };

/**
 * @param lastRevision the last sequence of the saved stream
 * @throws BackupError if someone has written to the bucket since it was restored.
 */
export async function fenceAndLoad(
  nc: NatsConnection,
  partition: number,
  lastRevision: number,
): Promise<LoadedPartition> {
  const store = createJetStreamStore(nc, buckets.state.bucket(partition), randomUUID);
  const { value, revision } = await store.readEpoch();
  // No process has ever owned it.
  if (value === null) return { kind: 'loads', lastEntry: 0, quarantined: [], hosts: [] };
  // A process that owned it at the time of the backup, and is still running, would pass the fence
  // at the old revision.
  const epoch = await retry(
    async () => (await store.takeEpoch(value, revision)) ?? 'refused',
    // The stream's leader has just changed. Nothing was written, so the epoch can still be taken.
    whilePassing((error) => isNoResponders(error)),
  );
  if (epoch !== lastRevision + 1) {
    throw new BackupError(
      `a process wrote to partition ${partition} during the restore: stop all actors, then restore again`,
    );
  }
  return load(nc, partition, store, epoch);
}

/** Attempts while the failure may be passing, `restoreAttempts` in all. */
const whilePassing = (isPassing: (error: unknown) => boolean): Retrying => ({
  pauseMs: () => restorePauseMs,
  onFailure: (error, attempt) => {
    if (attempt + 1 === restoreAttempts || !isPassing(error)) throw error;
  },
});

const isAtWork = ({ publicKey, fencedAtMs }: HostRecord): boolean => publicKey !== null && fencedAtMs === undefined;

async function load(nc: NatsConnection, partition: number, store: Store, epoch: number): Promise<LoadedPartition> {
  try {
    const {
      last,
      quarantined,
      records: loaded,
    } = await retry(
      async () => {
        const values = await store.load(epoch);
        return readPartition(values, await restoredCommits(nc, partition, readMark(values)), records);
      },
      // A replica that lags behind may have answered.
      whilePassing((error) => !(error instanceof LoadError)),
    );
    const hosts = loaded.flatMap((record) => (record.kind === 'host' && isAtWork(record) ? [record.key] : []));
    return { kind: 'loads', lastEntry: last, quarantined, hosts };
  } catch (error) {
    if (error instanceof LoadError) return { kind: 'refuses', why: error.message };
    throw error;
  }
}
