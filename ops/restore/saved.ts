/** Restores one stream of a backup, and sees that it is whole. */
import { join } from 'node:path';
import type { NatsConnection } from '@nats-io/transport-node';
import { BackupError } from '../backup/error.ts';
import type { SavedStream } from '../backup/folder.ts';
import { restoreStream, type StreamConfig } from '../backup/stream.ts';

export interface SavedOptions {
  readonly folder: string;
  /** Replicas of each stream; by default as many as the backed-up stream had. */
  readonly replicas: number | undefined;
  /** Called after each stream has been restored. */
  readonly onRestored: (stream: SavedStream) => void;
}

export const withReplicas = (config: StreamConfig, replicas: number | undefined): StreamConfig =>
  replicas === undefined ? config : { ...config, num_replicas: replicas };

/**
 * @param configOf the configuration to restore it with
 * @throws BackupError if the stream does not end as the saved one did
 */
export async function restoreSaved(
  nc: NatsConnection,
  saved: SavedStream,
  { folder, replicas, onRestored }: SavedOptions,
  configOf: (config: StreamConfig) => StreamConfig = (config) => config,
): Promise<void> {
  const snapshot = { config: configOf(withReplicas(saved.config, replicas)), state: saved.state };
  const { last_seq: last } = await restoreStream(nc, snapshot, join(folder, saved.file));
  if (last !== saved.state.last_seq) {
    throw new BackupError(
      `${saved.config.name} ends at sequence ${last} instead of ${saved.state.last_seq}: restore again`,
    );
  }
  onRestored(saved);
}
