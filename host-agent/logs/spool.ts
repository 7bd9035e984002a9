/**
 * The last log lines of containers that were removed before the control plane could take them: one
 * file for each container, ready to send. Bounded: the spool drops the oldest files of the tenant
 * with the most bytes, and counts their lines.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { ContainerId, TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { LogBlock } from '../../schemas/api/log.ts';
import { removeFile, writeAtomically } from '../disk/files.ts';
import { createNotify } from '../../lib/notify.ts';
import type { Publish } from './publish.ts';
import type { LogSource } from './source.ts';

/** Spool files that are sent at a time, each of another tenant. */
const logSpoolSenders = 4;

const decodeHead = decoder(
  Type.Object({ v: Type.Literal(1), tenant: TenantId, id: ContainerId, lines: Type.Integer() }),
);
const decodeBlock = decoder(LogBlock);

export interface Spool {
  /** Resolves when the blocks are on disk; the spool sends them from there. */
  add(source: LogSource, blocks: readonly string[], lines: number): Promise<void>;
  /** Resolves when no block of this container waits here, so that its newer lines may go. */
  settled(source: LogSource, signal: AbortSignal): Promise<void>;
  /** Sends the files, oldest first and one at a time for each tenant, until the signal aborts. */
  run(publish: Publish, signal: AbortSignal): Promise<void>;
}

interface Entry {
  readonly name: string;
  readonly bytes: number;
  readonly lines: number;
  readonly source: LogSource;
}

export async function openSpool(
  stateDir: string,
  nowMs: () => number,
  onDropped: (lines: number) => void,
  log: Log,
  maxBytes: number = limits.logSpoolBytes,
): Promise<Spool> {
  const folder = join(stateDir, 'spool');
  const entries = await list(folder, log);
  const changed = createNotify();
  let count = 0;

  const drop = async (entry: Entry): Promise<void> => {
    const index = entries.indexOf(entry);
    if (index >= 0) entries.splice(index, 1);
    await removeFile(join(folder, entry.name));
    changed.notify();
  };

  const makeRoom = async (source: LogSource, bytes: number): Promise<void> => {
    for (;;) {
      const total = entries.reduce((sum, entry) => sum + entry.bytes, bytes);
      const oldest = total <= maxBytes ? undefined : oldestOfLargest(entries, source.tenant, bytes);
      if (oldest === undefined) return;
      log.warn('log_spool_full', { container: oldest.source.id, droppedLines: oldest.lines });
      onDropped(oldest.lines);
      await drop(oldest);
    }
  };

  const sending = new Map<TenantId, Promise<void>>();
  const sendOne = async (entry: Entry, publish: Publish, signal: AbortSignal): Promise<void> => {
    if (await sendFile(join(folder, entry.name), entry, publish, log, signal)) await drop(entry);
  };
  /** The oldest file of a tenant whose files are not being sent now. */
  const nextToSend = (): Entry | undefined =>
    sending.size < logSpoolSenders ? entries.find(({ source }) => !sending.has(source.tenant)) : undefined;

  return {
    add: async (source, blocks, lines) => {
      if (blocks.length === 0) return;
      const content = [JSON.stringify({ v: 1, ...source, lines }), ...blocks].join('\n');
      const bytes = Buffer.byteLength(content);
      await makeRoom(source, bytes);
      const name = `${String(nowMs()).padStart(15, '0')}-${String((count += 1)).padStart(6, '0')}.ndjson`;
      await writeAtomically(join(folder, name), content);
      entries.push({ name, bytes, lines, source });
      changed.notify();
    },

    settled: async ({ id }, signal) => {
      while (!signal.aborted && entries.some((entry) => entry.source.id === id)) await changed.wait(undefined, signal);
    },

    run: async (publish, signal) => {
      while (!signal.aborted) {
        const entry = nextToSend();
        if (entry === undefined) {
          await changed.wait(undefined, signal);
          continue;
        }
        const { tenant } = entry.source;
        const sent = sendOne(entry, publish, signal).finally(() => {
          sending.delete(tenant);
          changed.notify();
        });
        sending.set(tenant, sent);
      }
      await Promise.all(sending.values());
    },
  };
}

/** The oldest file of the tenant with most bytes, counting those that `tenant` is about to add. */
function oldestOfLargest(entries: readonly Entry[], tenant: TenantId, added: number): Entry | undefined {
  const bytes = new Map<TenantId, number>([[tenant, added]]);
  for (const { source, bytes: more } of entries) bytes.set(source.tenant, (bytes.get(source.tenant) ?? 0) + more);
  const held = entries.map(({ source }) => source.tenant);
  const largest = held.reduce<TenantId | undefined>(
    (most, each) => (most !== undefined && (bytes.get(most) ?? 0) >= (bytes.get(each) ?? 0) ? most : each),
    undefined,
  );
  return entries.find(({ source }) => source.tenant === largest);
}

/** @returns `true` if all of it is safe, or it cannot be read */
async function sendFile(path: string, entry: Entry, publish: Publish, log: Log, signal: AbortSignal): Promise<boolean> {
  try {
    const [, ...blocks] = (await readFile(path, 'utf8')).split('\n');
    for (const block of blocks) {
      await publish(entry.source, block, decodeBlock(Buffer.from(block)).lines.length, signal);
      if (signal.aborted) return false;
    }
  } catch (error) {
    log.error('log_spool_unreadable', { path, error });
  }
  return true;
}

async function list(folder: string, log: Log): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (const name of (await namesIn(folder)).filter((each) => each.endsWith('.ndjson')).sort()) {
    const path = join(folder, name);
    try {
      const [head = ''] = (await readFile(path, 'utf8')).split('\n', 1);
      const { tenant, id, lines } = decodeHead(Buffer.from(head));
      entries.push({ name, bytes: (await stat(path)).size, lines, source: { tenant, id } });
    } catch (error) {
      log.error('log_spool_unreadable', { path, error });
      await removeFile(path).catch(() => undefined);
    }
  }
  return entries;
}

/** Empty if there is no folder, which is made with its first file. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
