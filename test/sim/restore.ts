/**
 * Backup and restore in virtual time. The backup saves each stream as of a different moment while
 * the cluster serves, the events last, and the restore brings that state back
 * (ops/backup/command.ts, ops/restore/command.ts). The steps of the restore itself are the real
 * code.
 */
import { fenceAndLoad } from '../../ops/restore/partition.ts';
import { sleep } from '../../lib/time/backoff.ts';
import { bucketStream, buckets, journalBuckets, streams } from '../../schemas/records/buckets.ts';
import { restoredCluster, type Cluster } from '../../schemas/records/cluster.ts';
import type { EventBody } from '../../schemas/api/event.ts';
import type { Random } from '../actors/support/random.ts';
import type { Connection, Nats } from './world/nats.ts';

/** Number of saved messages, by stream. */
export type Backup = ReadonlyMap<string, number>;

const streamOf = (partition: number): string => bucketStream(buckets.state.bucket(partition));

export async function takeBackup({ jetstream }: Nats, random: Random, partitions: number): Promise<Backup> {
  const saved = new Map<string, number>();
  // As in ops/backup/cluster.ts: what a saved journal lacks is in the buckets that are saved later.
  for (let number = 0; number < journalBuckets; number++) {
    const stream = bucketStream(buckets.journal.bucket(number));
    saved.set(stream, jetstream.stored(stream).length);
    await sleep(random.below(100));
  }
  const all = Array.from({ length: partitions }, (_, partition) => partition);
  for (const partition of random.once(2) ? all : all.reverse()) {
    saved.set(streamOf(partition), jetstream.stored(streamOf(partition)).length);
    await sleep(1 + random.below(1500));
  }
  for (const { name } of [streams.events, streams.audit]) saved.set(name, jetstream.stored(name).length);
  return saved;
}

/**
 * No actors process may run. Throws if a partition would not be served.
 * @returns the restored cluster
 */
export async function restoreBackup(
  { jetstream, world }: Nats,
  connection: Connection,
  backup: Backup,
  cluster: Cluster,
): Promise<Cluster> {
  jetstream.restore(backup);
  const lastEntries: number[] = [];
  const lastRevisions: number[] = [];
  for (let partition = 0; partition < cluster.partitions; partition++) {
    const last = backup.get(streamOf(partition)) ?? 0;
    const settled = await fenceAndLoad(connection.asClient, partition, last);
    if (settled.kind === 'refuses') throw new Error(`partition ${partition} of the backup: ${settled.why}`);
    lastEntries.push(settled.lastEntry);
    lastRevisions.push(last);
  }
  // As in ops/restore/events.ts: the ids of these events will be given again.
  for (const { name } of [streams.events, streams.audit]) {
    jetstream.keep(name, ({ payload }) =>
      (JSON.parse(payload) as Pick<EventBody, 'id'>[]).every(({ id }) => {
        const [partition = 0, entry = 0] = id.split('-').map(Number);
        return entry <= (lastEntries[partition] ?? 0);
      }),
    );
  }
  return restoredCluster(cluster, cluster, lastRevisions, world.stage.clock.nowMs());
}
