/**
 * Restores a cluster from its backup (ADR 9). Until all state is back a mark replaces the cluster's
 * record, so that no program serves a half-restored cluster. After an interruption the operator
 * runs the restore again, and it starts from the beginning. History, which nothing needs to serve,
 * comes after the record (history.ts).
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { jetstreamManager } from '@nats-io/jetstream';
import { checkServer } from '../../actors/cluster.ts';
import { sleep } from '../../lib/time/backoff.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { buckets, bucketStream } from '../../schemas/records/buckets.ts';
import {
  isRestoring,
  restoredCluster,
  usedIncarnation,
  type Cluster,
  type ClusterEntry,
} from '../../schemas/records/cluster.ts';
import type { DirectoryVersions } from '../../schemas/wire/directory.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import { protocolFields } from '../../schemas/wire/version.ts';
import { clusterStream, readClusterEntry } from '../../lib/nats/cluster-record.ts';
import { isNoResponders } from '../../lib/nats/kv-keys.ts';
import { BackupError } from '../backup/error.ts';
import { historyOf, readBackup, savedStreams, type Manifest } from '../backup/folder.ts';
import { api, streamInfo, type StreamInfo } from '../backup/stream.ts';
import { restoreHistory, type HistoryOptions, type RestoredHistory } from './history.ts';
import { askHosts, type HeardHosts } from './hosts.ts';
import { sealJournals } from './journals.ts';
import { markRestoring, type RestoreMark } from './mark.ts';
import { fenceAndLoad, type LoadedPartition } from './partition.ts';
import { requirePossible } from './possible.ts';
import { restoreSaved, withReplicas, type SavedOptions } from './saved.ts';
import { limits } from '../../schemas/limits.ts';
import { days, seconds } from '../../schemas/limits/units.ts';

/** A restore waits this long for an actors process to answer, and refuses to run if one does. */
const restoreListenersMs = 1 * seconds;
/** No host is believed that has seen a restore so long after the clock and the backup. */
const restoreAheadMs = 10 * 365 * days;

export interface RestoreOptions extends HistoryOptions {
  /** If true, the state that NATS holds now is deleted. */
  readonly replace: boolean;
  /** If true, that state may be of another cluster. */
  readonly otherCluster?: boolean;
  /** The restored incarnation is above it; if `undefined`, above the clock's time alone. */
  readonly incarnationAbove?: number | undefined;
  readonly clock: Clock;
  /** `isChecked` is true if the manifest has a checksum, which backups of before 0.2.0 lack. */
  readonly onChecked: (manifest: Manifest, isChecked: boolean) => void;
  /** All state is back, and actors may start; history follows. */
  readonly onServable?: (servable: Servable) => void | Promise<void>;
}

export interface Servable {
  readonly cluster: Cluster;
  /** Indexed by the partition's number. */
  readonly partitions: readonly LoadedPartition[];
  readonly hosts: HeardHosts;
}

export interface Restored extends Servable, RestoredHistory {}

const isStateStream = (name: string): boolean => /^KV_(state|journal)-\d+$/.test(name);

export async function restoreCluster(nc: NatsConnection, options: RestoreOptions): Promise<Restored> {
  const { manifest, isChecked } = await readBackup(options.folder, options);
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
  const above = Math.max(incarnationInUse(present, inTheWay), options.incarnationAbove ?? 0);

  await ensureClusterBucket(nc, manifest, options);
  const mark = await markRestoring(nc, { cluster: manifest.cluster.id, above });
  try {
    // A former member that was cut off and reconnects must not find its lease.
    const members = await streamInfo(nc, membersStream);
    for (const listed of [...inTheWay, ...(members === undefined ? [] : [members])]) await remove(nc, listed, mark);
    const partitions = await restoreState(nc, manifest, options, mark);
    const notAfterMs = Math.max(options.clock.nowMs(), Date.parse(manifest.takenAt)) + restoreAheadMs;
    const hosts = await askHosts(nc, partitions.flatMap(hostsOf), notAfterMs);
    const aboveMs = Math.max(options.clock.nowMs(), above, hosts.incarnation);
    const revisions = manifest.partitions.map(({ state }) => state.last_seq);
    const record = restoredCluster(manifest.cluster, undefined, revisions, aboveMs);
    const history = {
      streams: historyOf(manifest).map(({ config }) => config.name),
      takenAt: manifest.takenAt,
      lastEntries: partitions.map((loaded) => (loaded.kind === 'loads' ? loaded.lastEntry : null)),
    };
    await mark.check();
    await mark.replace({ ...record, history });
    const servable = { cluster: record, partitions, hosts };
    await options.onServable?.(servable);
    return { ...servable, ...(await restoreHistory(nc, manifest, options)) };
  } finally {
    await mark.stop();
  }
}

/** Brings the history that an interrupted restore left, whether actors run or not. */
export async function continueHistory(
  nc: NatsConnection,
  options: HistoryOptions & Pick<RestoreOptions, 'onChecked'>,
): Promise<RestoredHistory> {
  const { manifest, isChecked } = await readBackup(options.folder, options);
  options.onChecked(manifest, isChecked);
  await checkServer(nc);
  return restoreHistory(nc, manifest, options);
}

/** Streams without which nothing can be served. */
async function restoreState(
  nc: NatsConnection,
  manifest: Manifest,
  options: RestoreOptions,
  mark: Pick<RestoreMark, 'check'>,
): Promise<LoadedPartition[]> {
  for (const saved of manifest.journals) {
    await mark.check();
    await restoreSaved(nc, saved, options);
  }
  await sealJournals(nc, mark);
  const partitions: LoadedPartition[] = [];
  for (const [partition, saved] of manifest.partitions.entries()) {
    await mark.check();
    await restoreSaved(nc, saved, options);
    partitions.push(await fenceAndLoad(nc, partition, saved.state.last_seq));
  }
  return partitions;
}

const hostsOf = (loaded: LoadedPartition) => (loaded.kind === 'loads' ? loaded.hosts : []);

/** The last incarnation that programs may have seen, as far as these servers know. */
function incarnationInUse(present: ClusterEntry | undefined, inTheWay: readonly StreamInfo[]): number {
  if (present === undefined) return 0;
  if (isRestoring(present)) return present.above ?? 0;
  const lastOf = new Map(inTheWay.map(({ config, state }) => [config.name, state.last_seq]));
  const lasts = Array.from({ length: present.partitions }, (_, number) => bucketStream(buckets.state.bucket(number)));
  return usedIncarnation(
    present,
    lasts.map((name) => lastOf.get(name) ?? 0),
  );
}

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

/** True if a subject has a subscriber. If it has none, the server says so at once. */
async function hasSubscriber(nc: NatsConnection, subject: string): Promise<boolean> {
  try {
    const nothingHeld = JSON.stringify({ ...protocolFields, versions: {} } satisfies DirectoryVersions);
    await nc.request(subject, nothingHeld, { timeout: restoreListenersMs });
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

async function ensureClusterBucket(
  nc: NatsConnection,
  { bucket }: Manifest,
  { replicas }: SavedOptions,
): Promise<void> {
  if ((await streamInfo(nc, clusterStream)) !== undefined) return;
  await api(nc, `STREAM.CREATE.${clusterStream}`, withReplicas(bucket, replicas));
}
