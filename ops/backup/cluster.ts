/**
 * Backs up all state of a cluster into a folder while the cluster serves (ADR 9). The streams are
 * saved one after another, each as it is at one moment. Journals come before the partitions: a
 * commit that is gone from a journal by then is in its partition's bucket when that is saved.
 * `EVENTS` and `AUDIT` come after the partitions: every event that a saved partition has handed
 * over to its stream is then in the backup.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { checkServer } from '../../actors/cluster.ts';
import { type Clock } from '../../lib/time/clock.ts';
import { timestamp } from '../../lib/time/timestamp.ts';
import { clusterStream, readClusterEntry } from '../../lib/nats/cluster-record.ts';
import { version } from '../../lib/version.ts';
import { buckets, bucketStream, journalBuckets, streams } from '../../schemas/records/buckets.ts';
import { isRestoring } from '../../schemas/records/cluster.ts';
import { BackupError } from './error.ts';
import { writeBackup, type Manifest, type SavedStream } from './folder.ts';
import { saveStream, streamInfo } from './stream.ts';

export interface BackupOptions {
  readonly folder: string;
  readonly withLogs: boolean;
  readonly clock: Clock;
  /** Called after each stream has been written to disk. */
  readonly onSaved: (stream: SavedStream) => void;
}

export async function backUpCluster(nc: NatsConnection, options: BackupOptions): Promise<Manifest> {
  await checkServer(nc);
  const bucket = await streamInfo(nc, clusterStream);
  const { entry: cluster } = await readClusterEntry(nc);
  if (bucket === undefined || cluster === undefined)
    throw new BackupError('no cluster exists on this NATS server: check NATS_URLS');
  if (isRestoring(cluster))
    throw new BackupError('this cluster is being restored: finish the restore, then back it up');
  if (cluster.history !== undefined) {
    throw new BackupError(
      `the history of this cluster is not restored yet (${cluster.history.streams.join(', ')}): wait for the ` +
        'restore, or finish it with restore --only-history, then back it up',
    );
  }

  return writeBackup(options.folder, async (folder) => {
    const save = async (name: string): Promise<SavedStream> => {
      const file = `${name}.snapshot`;
      const saved = { file, ...(await saveStream(nc, name, `${folder}/${file}`)) };
      options.onSaved(saved);
      return saved;
    };
    const takenAt = timestamp(options.clock.nowMs());
    const eventsKnown = (await streamInfo(nc, streams.events.name))?.state.last_seq ?? 0;
    const auditKnown = (await streamInfo(nc, streams.audit.name))?.state.last_seq ?? 0;
    const journals: SavedStream[] = [];
    for (let number = 0; number < journalBuckets; number++) {
      journals.push(await save(bucketStream(buckets.journal.bucket(number))));
    }
    const partitions: SavedStream[] = [];
    for (let partition = 0; partition < cluster.partitions; partition++) {
      partitions.push(await save(bucketStream(buckets.state.bucket(partition))));
    }
    const events = await save(streams.events.name);
    const audit = await save(streams.audit.name);
    const usage = await save(streams.usage.name);
    const logs = options.withLogs ? { logs: await save(streams.logs.name) } : {};
    return {
      format: 2,
      version,
      takenAt,
      cluster,
      bucket: bucket.config,
      journals,
      partitions,
      events,
      eventsKnown,
      audit,
      auditKnown,
      usage,
      ...logs,
    };
  });
}
