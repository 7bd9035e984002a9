/** A nats-server of its own with a small cluster on it, which tests back up and restore. */
import { createHash, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { headers, type NatsConnection } from '@nats-io/transport-node';
import { jetstreamManager } from '@nats-io/jetstream';
import type { Test } from 'tap';
import { joinCluster } from '../../../actors/cluster.ts';
import { records } from '../../../actors/domain/domain.ts';
import { batchWrites } from '../../../actors/runtime/journal/checkpoint.ts';
import { encodeValue } from '../../../actors/runtime/journal/codec.ts';
import { RecordsDigest } from '../../../actors/runtime/journal/digest.ts';
import { backUpCluster } from '../../../ops/backup/cluster.ts';
import type { Manifest } from '../../../ops/backup/folder.ts';
import { api, streamInfo } from '../../../ops/backup/stream.ts';
import { restoreCluster, type Restored, type RestoreOptions } from '../../../ops/restore/cluster.ts';
import { startNats, type Nats } from '../../../dev/servers/nats.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { buckets, keys } from '../../../schemas/records/buckets.ts';
import type { Cluster } from '../../../schemas/records/cluster.ts';
import { tenantCommit } from '../../actors/support/commits.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { controlPlane } from '../actors/support.ts';

export const partitions = 2;
export const stateKey = (partition: number, key: string): string => `$KV.${buckets.state.bucket(partition)}.${key}`;
export const newFolder = (t: Test): string => join(temporaryFolder(t), 'backup');

export interface Stored {
  readonly subject: string;
  readonly seq: number;
  readonly data?: string;
  readonly hdrs?: string;
  readonly time: string;
}

/** Commits of a partition as a checkpoint leaves them: key and value. */
export function checkpointed(commits: number): (readonly [key: string, value: string])[] {
  const all = Array.from({ length: commits }, (_, index) => tenantCommit(index + 1));
  const writes = batchWrites(all, new RecordsDigest(records), (number) => ({ number, journals: [] }));
  return writes.map(({ key, value }) => [key, String(value)]);
}

/** The names in a folder; none if the server removes the folder meanwhile. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** Replaces text in the manifest, with a new checksum, as the program that wrote it would. */
export function replaceInManifest(folder: string, found: string | RegExp, by: string): void {
  const path = join(folder, 'manifest.json');
  writeFileSync(path, readFileSync(path, 'utf8').replace(found, by));
  const sum = createHash('sha256').update(readFileSync(path)).digest('hex');
  writeFileSync(join(folder, 'manifest.sha256'), `${sum}  manifest.json\n`);
}

export interface Ground {
  readonly nats: Nats;
  readonly nc: NatsConnection;
  /** @returns the sequence of the message */
  put(subject: string, value: string, head?: Record<string, string>): Promise<number>;
  /** Every message that the server has in a stream. */
  contentOf(name: string): Promise<Stored[]>;
  /** Deletes all streams. */
  destroy(): Promise<void>;
  /** A cluster of two partitions; the first had an owner, which made two commits. */
  freshCluster(): Promise<Cluster>;
  backUp(folder: string, onSaved?: () => void): Promise<Manifest>;
  restore(folder: string, more?: Partial<RestoreOptions>): Promise<Restored>;
  joinRestored(): Promise<Cluster>;
}

export async function startGround(t: Test): Promise<Ground> {
  const natsFolder = temporaryFolder(t);
  const nats = await startNats({ dir: natsFolder });
  t.teardown(() => nats.stop());
  const nc = await controlPlane(nats);
  t.teardown(() => nc.close());

  async function put(subject: string, value: string, head: Record<string, string> = {}): Promise<number> {
    const given = headers();
    for (const [name, text] of Object.entries(head)) given.set(name, text);
    const ack = (await nc.request(subject, value, { headers: given, timeout: 5000 })).json<{
      seq?: number;
      error?: object;
    }>();
    if (ack.seq === undefined) throw new Error(`${subject}: ${JSON.stringify(ack.error)}`);
    return ack.seq;
  }

  async function contentOf(name: string): Promise<Stored[]> {
    const info = await streamInfo(nc, name);
    const messages: Stored[] = [];
    for (let seq = info?.state.first_seq ?? 1; seq <= (info?.state.last_seq ?? 0); seq++) {
      const found = await api<{ message: Stored }>(nc, `STREAM.MSG.GET.${name}`, { seq }).catch(() => undefined);
      if (found !== undefined) messages.push(found.message);
    }
    return messages;
  }

  async function destroy(): Promise<void> {
    const jsm = await jetstreamManager(nc);
    for await (const name of jsm.streams.names()) await jsm.streams.delete(name);
    await waitForRemovedStreams();
  }

  /**
   * Waits until the server has removed deleted streams from its disk. It renames the folder of a
   * deleted stream to `.<stream>`, answers, and removes the folder later (nats-server 2.15). If a
   * stream of the same name is created and deleted meanwhile, the server refuses to create a third.
   */
  async function waitForRemovedStreams(): Promise<void> {
    const accounts = join(natsFolder, 'jetstream', 'jetstream');
    const leftovers = (): string[] =>
      namesIn(accounts).flatMap((account) =>
        namesIn(join(accounts, account, 'streams')).filter((name) => name.startsWith('.')),
      );
    const deadlineMs = performance.now() + 60_000;
    while (leftovers().length > 0) {
      if (performance.now() > deadlineMs) throw new Error(`still on the disk: ${leftovers().join()}`);
      await sleep(10);
    }
  }

  async function freshCluster(): Promise<Cluster> {
    await destroy();
    const cluster = await joinCluster(nc, { partitions, replicas: 1, newId: randomUUID });
    await put(stateKey(0, keys.epoch), encodeValue({ token: 'a', owner: 'former', takenAtMs: 1 }));
    for (const [key, value] of checkpointed(2)) await put(stateKey(0, key), value);
    await put('event.acme.c', JSON.stringify([{ id: '0-1-0' }]));
    await put('event.acme.c', JSON.stringify([{ id: '0-2-0' }]));
    await put('host.h1.log.acme.c', 'a line');
    return cluster;
  }

  const backUp = (folder: string, onSaved: () => void = () => {}): Promise<Manifest> =>
    backUpCluster(nc, { folder, withLogs: true, clock: systemClock, onSaved });

  const restore = (folder: string, more: Partial<RestoreOptions> = {}): Promise<Restored> =>
    restoreCluster(nc, {
      folder,
      replace: false,
      replicas: undefined,
      clock: systemClock,
      onChecked: () => {},
      onRestored: () => {},
      ...more,
    });

  const joinRestored = (): Promise<Cluster> => joinCluster(nc, { partitions, replicas: 1, newId: randomUUID });

  return { nats, nc, put, contentOf, destroy, freshCluster, backUp, restore, joinRestored };
}
