/**
 * Checks that the NATS servers can take a backup, before a restore deletes anything. The servers
 * decide themselves: a stream that is as large as what is missing is created, and deleted at once.
 * On a single server it also shows how long a message takes to be on disk.
 */
import { randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import { isNoResponders } from '../../lib/nats/kv-keys.ts';
import { BackupError } from '../backup/error.ts';
import { api, ApiRefusal, isNotFound, slowDisk, type Snapshot, type StreamInfo } from '../backup/stream.ts';
import { limits } from '../../schemas/limits.ts';
import { KiB, MiB, seconds } from '../../schemas/limits/units.ts';

/**
 * nats-server 2.15 compresses a snapshot in blocks of this size, and gives up a restore when one
 * takes it this long.
 */
const snapshotBlockBytes = 1 * MiB;
const restoreBlockMs = 5 * seconds;
/** Messages that show how long a server takes to store one, and room for them. */
const restoreProbeMessages = 32;
const restoreProbeBytes = 64 * KiB;
const probeSubjects = 'longshore.restore.probe';

type Sized = Pick<Snapshot, 'config' | 'state'>;
type Placed = Sized & Pick<StreamInfo, 'cluster'>;

/** Bytes that a server sets aside for a stream, or that it holds now. */
function bytesOf({ config, state }: Sized): number {
  const reserved = Number(config.max_bytes ?? -1);
  return Math.max(reserved, state.bytes, 0);
}

const sumOf = (streams: readonly Sized[]): number => streams.reduce((sum, stream) => sum + bytesOf(stream), 0);

/** Bytes that each server gets back when the streams are deleted, the most first. */
function freedBytes(present: readonly Placed[]): number[] {
  const freed = new Map<string, number>();
  for (const stream of present) {
    const { leader = '', replicas = [] } = stream.cluster ?? {};
    for (const server of [leader, ...replicas.map(({ name }) => name)]) {
      freed.set(server, (freed.get(server) ?? 0) + bytesOf(stream));
    }
  }
  return [...freed.values()].sort((one, other) => other - one);
}

/**
 * Bytes that the server with the least room has to have besides those of the streams that the
 * restore deletes. With as many replicas as servers, each gets all of the backup; with fewer,
 * the streams spread over more of them.
 */
export function missingBytes(backedUp: readonly Sized[], present: readonly Placed[], replicas: number): number {
  const freed = freedBytes(present);
  const least = freed.length > replicas ? freed.reduce((sum, bytes) => sum + bytes, 0) / replicas : freed[replicas - 1];
  return Math.max(0, Math.ceil(sumOf(backedUp) - (least ?? 0)));
}

/**
 * @param present streams that the restore deletes
 * @throws BackupError that says what the servers lack
 */
export async function requirePossible(
  nc: NatsConnection,
  backedUp: readonly Sized[],
  present: readonly Placed[],
): Promise<void> {
  const replicas = Math.max(...backedUp.map(({ config }) => config.num_replicas));
  const missing = missingBytes(backedUp, present, replicas);
  await removeProbes(nc);
  const name = `longshore-restore-${randomUUID()}`;
  const subject = `${probeSubjects}.${name}`;
  const probe = {
    name,
    subjects: [subject],
    storage: 'file',
    num_replicas: replicas,
    max_bytes: Math.max(restoreProbeBytes, missing),
  };
  try {
    await api(nc, `STREAM.CREATE.${name}`, probe);
  } catch (error) {
    if (error instanceof ApiRefusal) throw new BackupError(reasonOf(error, replicas, missing), error);
    throw error;
  }
  try {
    if (replicas === 1) requireFastDisk(backedUp, await messageMs(nc, subject));
  } catch (error) {
    if (!isNoResponders(error)) throw error;
    const message = 'another restore began at this moment; nothing was changed: see what runs, then restore again';
    throw new BackupError(message, error);
  } finally {
    await removeProbe(nc, name);
  }
}

/**
 * Deletes what restores that were killed have left, which sets the room aside that this one needs.
 * Of two restores at one moment, the former may lose its stream to the other, and is refused.
 */
async function removeProbes(nc: NatsConnection): Promise<void> {
  const { streams } = await api<{ streams: string[] | null }>(nc, 'STREAM.NAMES', { subject: `${probeSubjects}.*` });
  for (const name of streams ?? []) await removeProbe(nc, name);
}

async function removeProbe(nc: NatsConnection, name: string): Promise<void> {
  try {
    await api(nc, `STREAM.DELETE.${name}`);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** Time that a single server takes to store a message of a stream. */
async function messageMs(nc: NatsConnection, subject: string): Promise<number> {
  const startMs = performance.now();
  const stored = Array.from({ length: restoreProbeMessages }, () =>
    nc.request(subject, '', { timeout: limits.backupRequestMs }),
  );
  await Promise.all(stored);
  return (performance.now() - startMs) / restoreProbeMessages;
}

/**
 * A server stores what it restores message by message, and gives up if a block of the snapshot
 * takes too long.
 * @throws BackupError if one would
 */
export function requireFastDisk(backedUp: readonly Sized[], perMessageMs: number): void {
  for (const { config, state } of backedUp) {
    const messageBytes = state.bytes / Math.max(1, state.messages);
    const inBlock = Math.min(state.messages, snapshotBlockBytes / Math.max(1, messageBytes));
    if (inBlock * perMessageMs <= restoreBlockMs) continue;
    throw new BackupError(
      `the NATS server takes ${perMessageMs.toFixed(1)} ms to store a message: it would give up restoring ` +
        `${config.name}; nothing was changed: ${slowDisk}`,
    );
  }
}

/** `present` is as it was: nothing has been deleted. */
function reasonOf({ error: { description } }: ApiRefusal, replicas: number, missing: number): string {
  const nothing = 'nothing was changed';
  if (/storage|bytes/.test(description)) {
    return (
      `the NATS servers lack storage for ${Math.ceil(missing / 2 ** 20)} MiB more` +
      `${replicas > 1 ? ` on each of ${replicas}` : ''} (${description}); ${nothing}: ` +
      'make room, restart nats-server (it measures its disk only at its start), and restore again'
    );
  }
  if (replicas > 1) {
    return (
      `the NATS servers can't keep ${replicas} replicas of a stream (${description}); ${nothing}: ` +
      'start as many servers, or add --replicas 1'
    );
  }
  return `the NATS servers can't take the backup (${description}); ${nothing}`;
}
