/**
 * Restores a cluster from its backup (ADR 9). Until the last step a mark replaces the cluster's
 * record, so that no program serves a half-restored cluster. After an interruption the operator
 * runs the restore again, and it starts from the beginning.
 */
import { join } from 'node:path';
import type { NatsConnection } from '@nats-io/transport-node';
import { jetstreamManager } from '@nats-io/jetstream';
import { checkServer } from '../../actors/cluster.ts';
import { sleep } from '../../lib/time/backoff.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { buckets, bucketStream } from '../../schemas/records/buckets.ts';
import { isRestoring, restoredCluster, type Cluster, type ClusterEntry } from '../../schemas/records/cluster.ts';
import type { DirectoryVersions } from '../../schemas/wire/directory.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import { spoken } from '../../schemas/wire/version.ts';
import { clusterStream, readClusterEntry } from '../../lib/nats/cluster-record.ts';
import { BackupError } from '../backup/error.ts';
import { readBackup, savedStreams, type Manifest, type SavedStream } from '../backup/folder.ts';
import {
  api,
  isNoResponders,
  restoreStream,
  streamInfo,
  type StreamConfig,
  type StreamInfo,
} from '../backup/stream.ts';
import { dropUnknownEvents } from './events.ts';
import { sealJournals } from './journals.ts';
import { markRestoring, type RestoreMark } from './mark.ts';
import { fenceAndLoad, type LoadedPartition } from './partition.ts';
import { requirePossible } from './possible.ts';
import { limits } from '../../schemas/limits.ts';

export interface RestoreOptions {
  readonly folder: string;
  /** Whether to delete the state that NATS holds now. */
  readonly replace: boolean;
  /** Whether that state may be of another cluster. */
  readonly otherCluster?: boolean;
  /** Replicas of each stream; undefined: as many as the backed-up stream had. */
  readonly replicas: number | undefined;
  /** The restored incarnation is above it; undefined: above the clock's time alone. */
  readonly incarnationAbove?: number | undefined;
  readonly clock: Clock;
  /** `isChecked`: whether the manifest has a checksum, which backups of the last release lack. */
  readonly onChecked: (manifest: Manifest, isChecked: boolean) => void;
  /** Called after each stream has been restored. */
  readonly onRestored: (stream: SavedStream) => void;
}

export interface Restored {
  readonly cluster: Cluster;
  /** Indexed by the partition's number. */
  readonly partitions: readonly LoadedPartition[];
  /** How many messages were deleted because no restored partition knows their events. */
  readonly eventsDropped: number;
  readonly linesDropped: number;
}

const isStateStream = (name: string): boolean => /^KV_(state|journal)-\d+$/.test(name);

export async function restoreCluster(nc: NatsConnection, options: RestoreOptions): Promise<Restored> {
  const { manifest, isChecked } = await readBackup(options.folder);
  options.onChecked(manifest, isChecked);
  await checkServer(nc);
  await requireNoActors(nc);

  const { entry: present } = await readClusterEntry(nc);
  const inTheWay = await streamsInTheWay(nc, manifest);
  const isInterrupted = present !== undefined && isRestoring(present);
  if (!isInterrupted && !options.replace) requireEmpty(present, inTheWay);
  if (options.otherCluster !== true) requireSameCluster(present, manifest.cluster);
  const backedUp = savedStreams(manifest).map(({ config, state }) => ({
    config: withReplicas(config, options.replicas),
    state,
  }));
  await requirePossible(nc, backedUp, inTheWay);

  await ensureClusterBucket(nc, withReplicas(manifest.bucket, options.replicas));
  const mark = await markRestoring(nc, manifest.cluster.id);
  try {
    // A former member that was cut off and reconnects must not find its lease.
    const members = await streamInfo(nc, membersStream);
    for (const listed of [...inTheWay, ...(members === undefined ? [] : [members])]) await remove(nc, listed, mark);
    const restored = await restoreStreams(nc, manifest, options, mark);
    const former = present === undefined || isRestoring(present) ? undefined : present;
    const aboveMs = Math.max(options.clock.nowMs(), options.incarnationAbove ?? 0);
    const revisions = manifest.partitions.map(({ state }) => state.last_seq);
    const cluster = restoredCluster(manifest.cluster, former, revisions, aboveMs);
    await mark.replace(cluster);
    return { cluster, ...restored };
  } finally {
    await mark.stop();
  }
}

async function restoreStreams(
  nc: NatsConnection,
  manifest: Manifest,
  { folder, replicas, onRestored }: RestoreOptions,
  mark: Pick<RestoreMark, 'check'>,
): Promise<Omit<Restored, 'cluster'>> {
  const restore = async (saved: SavedStream): Promise<void> => {
    await mark.check();
    const snapshot = { config: withReplicas(saved.config, replicas), state: saved.state };
    const { last_seq: last } = await restoreStream(nc, snapshot, join(folder, saved.file));
    // Hosts publish log lines as soon as the stream exists.
    const isWhole = saved === manifest.logs ? last >= saved.state.last_seq : last === saved.state.last_seq;
    if (!isWhole)
      throw new BackupError(
        `${saved.config.name} ends at sequence ${last} instead of ${saved.state.last_seq}: restore again`,
      );
    onRestored(saved);
  };
  for (const saved of manifest.journals) await restore(saved);
  await sealJournals(nc);
  const partitions: LoadedPartition[] = [];
  for (const [partition, saved] of manifest.partitions.entries()) {
    await restore(saved);
    partitions.push(await fenceAndLoad(nc, partition, saved.state.last_seq));
  }
  const dropUnknown = async (saved: SavedStream, known: number): Promise<number> => {
    await restore(saved);
    const range = { stream: saved.config.name, known, last: saved.state.last_seq };
    return dropUnknownEvents(nc, range, (partition) => {
      const loaded = partitions[partition];
      return loaded?.kind === 'loads' ? loaded.lastEntry : undefined;
    });
  };
  const eventsDropped = await dropUnknown(manifest.events, manifest.eventsKnown);
  const linesDropped = await dropUnknown(manifest.audit, manifest.auditKnown);
  await restore(manifest.usage);
  if (manifest.logs !== undefined) await restore(manifest.logs);
  return { partitions, eventsDropped, linesDropped };
}

const withReplicas = (config: StreamConfig, replicas: number | undefined): StreamConfig =>
  replicas === undefined ? config : { ...config, num_replicas: replicas };

const membersStream = bucketStream(buckets.members.bucket);

/**
 * A running actors process would write its memory over the restored state. It can be seen by its
 * subscription to `directory.refresh`, or by the renewals of its lease.
 */
async function requireNoActors(nc: NatsConnection): Promise<void> {
  if (await hasSubscriber(nc, subjects.directoryRefresh))
    throw new BackupError('an actors process is running: stop all actors first');
  const before = await streamInfo(nc, membersStream);
  if (before === undefined) return;
  await sleep(limits.restoreMarkStillMs);
  const after = await streamInfo(nc, membersStream);
  if (after?.state.last_seq !== before.state.last_seq) {
    throw new BackupError('an actors process is running (it renews its lease): stop all actors first');
  }
}

/** Whether a subject has a subscriber. If it has none, the server says so at once. */
async function hasSubscriber(nc: NatsConnection, subject: string): Promise<boolean> {
  try {
    const nothingHeld = JSON.stringify({ ...spoken, versions: {} } satisfies DirectoryVersions);
    await nc.request(subject, nothingHeld, { timeout: limits.restoreListenersMs });
    return true;
  } catch (error) {
    // A timeout means that a subscriber exists: actors do not answer on this subject.
    return !isNoResponders(error);
  }
}

/**
 * The streams that the backup brings, and those of all partitions and journals: a former cluster
 * may have had more partitions, and none of them may stay.
 */
async function streamsInTheWay(nc: NatsConnection, manifest: Manifest): Promise<StreamInfo[]> {
  const brought = new Set(savedStreams(manifest).map(({ config }) => config.name));
  const jsm = await jetstreamManager(nc);
  const streams: StreamInfo[] = [];
  for await (const name of jsm.streams.names()) {
    const info = brought.has(name) || isStateStream(name) ? await streamInfo(nc, name) : undefined;
    if (info !== undefined) streams.push(info);
  }
  return streams;
}

/** Deletes a stream that was listed, and no later one of its name. */
async function remove(nc: NatsConnection, listed: StreamInfo, mark: Pick<RestoreMark, 'check'>): Promise<void> {
  const { name } = listed.config;
  const now = await streamInfo(nc, name);
  await mark.check();
  if (now === undefined) return;
  if (now.created !== listed.created) {
    throw new BackupError(`${name} was created while this restore ran: see what runs, then restore again`);
  }
  await api(nc, `STREAM.DELETE.${name}`);
}

/** A backup of staging must not replace production: its hosts would know no container. */
function requireSameCluster(present: ClusterEntry | undefined, backedUp: Cluster): void {
  const id = present === undefined ? undefined : isRestoring(present) ? present.cluster : present.id;
  if (id === undefined || id === backedUp.id) return;
  throw new BackupError(
    `NATS holds cluster ${id}, and the backup is of cluster ${backedUp.id}: check NATS_URLS and the folder; ` +
      'add --other-cluster if you mean it, and enrol all hosts again afterwards',
  );
}

function requireEmpty(present: ClusterEntry | undefined, inTheWay: readonly StreamInfo[]): void {
  const there = [...(present === undefined ? [] : [clusterStream]), ...inTheWay.map(({ config }) => config.name)];
  if (there.length === 0) return;
  throw new BackupError(`NATS already holds a cluster (${there.join(', ')}): add --replace to delete it first`);
}

async function ensureClusterBucket(nc: NatsConnection, config: StreamConfig): Promise<void> {
  if ((await streamInfo(nc, clusterStream)) === undefined) await api(nc, `STREAM.CREATE.${clusterStream}`, config);
}
