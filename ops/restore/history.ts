/**
 * Restores what is only read: events, audit, usage and log lines. It takes as long as they have
 * messages, so the cluster serves meanwhile: owners park what is for these streams, and hosts keep
 * theirs. A stream takes no message before it is whole, so that all it gets comes after.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { clusterSubject, readClusterEntry } from '../../lib/nats/cluster-record.ts';
import { compareAndSet } from '../../lib/nats/kv-keys.ts';
import { limits } from '../../schemas/limits.ts';
import { streams } from '../../schemas/records/buckets.ts';
import { isRestoring, isSameCluster, type Cluster, type History } from '../../schemas/records/cluster.ts';
import { BackupError } from '../backup/error.ts';
import { historyOf, type Manifest, type SavedStream } from '../backup/folder.ts';
import { api, streamInfo, type StreamConfig } from '../backup/stream.ts';
import { dropUnknownEvents } from './events.ts';
import { restoreSaved, withReplicas, type SavedOptions } from './saved.ts';

export interface HistoryOptions extends SavedOptions {
  /** The streams begin empty. */
  readonly withoutHistory?: boolean;
}

/** Number of messages deleted because no restored partition knows their events. */
export interface RestoredHistory {
  readonly eventsDropped: number;
  readonly linesDropped: number;
}

/** The stream takes no message and answers no reader. */
const closed = (config: StreamConfig): StreamConfig => ({
  ...config,
  subjects: [`longshore.restore.${config.name}`],
  allow_direct: false,
});
const isClosed = (config: StreamConfig): boolean => String(config['subjects']) === String(closed(config)['subjects']);

/**
 * Brings what the record of the cluster says is missing. Can be run again after an interruption.
 * @throws BackupError if nothing is missing, or another backup has it
 */
export async function restoreHistory(
  nc: NatsConnection,
  manifest: Manifest,
  options: HistoryOptions,
): Promise<RestoredHistory> {
  const { record, history } = await readMissing(nc, manifest);
  const check = async (): Promise<Missing> => {
    const now = await readMissing(nc, manifest);
    if (isSameCluster(now.record, record)) return now;
    throw new BackupError('another restore of this cluster has run since: this one stops');
  };
  const dropped = new Map<string, number>();
  for (const saved of historyOf(manifest)) {
    const { name } = saved.config;
    if (!history.streams.includes(name)) continue;
    await check();
    const present = await streamInfo(nc, name);
    // An interrupted restore of this stream left it. Nothing else has written to it.
    if (present !== undefined && isClosed(present.config)) await api(nc, `STREAM.DELETE.${name}`);
    else if (present !== undefined) continue;
    if (options.withoutHistory === true)
      await api(nc, `STREAM.CREATE.${name}`, withReplicas(saved.config, options.replicas));
    else dropped.set(name, await restoreOne(nc, saved, { ...options, history, known: knownIn(manifest, name), check }));
  }
  await endHistory(nc, await check());
  return {
    eventsDropped: dropped.get(streams.events.name) ?? 0,
    linesDropped: dropped.get(streams.audit.name) ?? 0,
  };
}

/** The last sequence whose events all partitions know; `undefined` if the stream has no events. */
const knownIn = ({ eventsKnown, auditKnown }: Manifest, stream: string): number | undefined =>
  stream === streams.events.name ? eventsKnown : stream === streams.audit.name ? auditKnown : undefined;

interface OneOptions extends SavedOptions {
  readonly history: History;
  readonly known: number | undefined;
  readonly check: () => Promise<unknown>;
}

/** @returns number of deleted messages */
async function restoreOne(
  nc: NatsConnection,
  saved: SavedStream,
  { history, known, check, ...options }: OneOptions,
): Promise<number> {
  const { name } = saved.config;
  await restoreSaved(nc, saved, options, closed);
  const range = { stream: name, known: known ?? Infinity, last: saved.state.last_seq };
  const lastEntry = (partition: number): number | undefined => history.lastEntries[partition] ?? undefined;
  const dropped = await dropUnknownEvents(nc, range, lastEntry, check);
  await check();
  await api(nc, `STREAM.UPDATE.${name}`, withReplicas(saved.config, options.replicas));
  return dropped;
}

interface Missing {
  readonly record: Cluster;
  readonly history: History;
  readonly revision: number;
}

async function readMissing(nc: NatsConnection, { takenAt, cluster }: Manifest): Promise<Missing> {
  const { entry, revision } = await readClusterEntry(nc);
  if (entry === undefined || isRestoring(entry) || entry.id !== cluster.id) {
    throw new BackupError('NATS does not hold the restored cluster: restore it first');
  }
  const { history } = entry;
  if (history === undefined) throw new BackupError('this cluster has all of its history: nothing is to be restored');
  if (history.takenAt !== takenAt) {
    throw new BackupError(`this cluster was restored from the backup of ${history.takenAt}: name its folder`);
  }
  return { record: entry, history, revision };
}

async function endHistory(nc: NatsConnection, { record, revision }: Missing): Promise<void> {
  const { history: _, ...whole } = record;
  const written = { timeoutMs: limits.restoreMarkWriteMs };
  if ((await compareAndSet(nc, clusterSubject, JSON.stringify(whole), revision, written)) === undefined) {
    throw new BackupError('the record of the cluster has changed: see whether another restore runs');
  }
}
