/**
 * A file of changes, beside files that hold everything and are replaced as a whole. A change costs
 * one line and one write, however much the whole is. The whole is written when the log has grown to
 * its bound, after a write that failed, and when the agent stops.
 */
import { mkdir, open, writeFile, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import { createLazyWriter, readIfPresent, syncFolder, type LazyFile } from './files.ts';
import type { StateDisk } from './state-disk.ts';

export interface ChangeLogParts {
  readonly path: string;
  /** The changes since the last call, which become one line; `undefined` if there are none. */
  readonly changes: () => object | undefined;
  /**
   * Writes everything to the whole files. A crash may follow before the log is emptied, so lines
   * that the whole files contain must do no harm at a load.
   */
  readonly writeWhole: () => Promise<void>;
  /** The size of the lines that the last run left. */
  readonly bytes: number;
  /**
   * `true` if the log is of no use before the whole is written, as after a line that was cut off.
   */
  readonly isWholeDue: boolean;
  readonly intervalMs: number;
  readonly disk: StateDisk;
}

export interface SyncedLog extends LazyFile {
  /** As `flush`, but the log goes on; `flush` ends with the whole files written. */
  sync(): Promise<void>;
}

/** The lines of a log that are complete. */
export interface Lines<T> {
  readonly lines: readonly T[];
  readonly bytes: number;
  /**
   * `torn`: the last write was cut off, as by a crash. `damaged`: a line before it cannot be read.
   */
  readonly end: 'whole' | 'torn' | 'damaged';
}

const checksum = (json: string | Uint8Array): string => crc32(json).toString(16).padStart(8, '0');

const lineOf = (value: object): string => {
  const json = JSON.stringify(value);
  return `${checksum(json)} ${json}\n`;
};

/**
 * Reads the lines. A log with a damaged one is copied for an operator to look at, and stays damaged
 * until the whole is written: another start before that must not take the whole files for current.
 */
export async function readChangeLog<T>(path: string, decode: (bytes: Uint8Array) => T, log: Log): Promise<Lines<T>> {
  const content = (await readIfPresent(path)) ?? Buffer.alloc(0);
  const read = linesIn(content, decode);
  if (read.end === 'torn') log.warn('state_file_torn', { path });
  if (read.end === 'damaged') {
    log.error('state_file_unreadable', { path });
    // Not copied: Node's copy of a file that gets shorter meanwhile never ends (libuv).
    await writeFile(`${path}.unreadable`, content, { mode: 0o600 }).catch((error: unknown) =>
      log.warn('state_file_set_aside_failed', { path, error }),
    );
  }
  return read;
}

function linesIn<T>(content: Buffer, decode: (bytes: Uint8Array) => T): Lines<T> {
  const lines: T[] = [];
  for (let from = 0; from < content.length;) {
    const end = content.indexOf('\n', from);
    const line = end < 0 ? undefined : decoded(content.subarray(from, end), decode);
    if (line === undefined) {
      // A line is one write, and a later one begins after it is on disk.
      const isLast = end < 0 || end === content.length - 1;
      return { lines, bytes: from, end: isLast ? 'torn' : 'damaged' };
    }
    lines.push(line.value);
    from = end + 1;
  }
  return { lines, bytes: content.length, end: 'whole' };
}

function decoded<T>(line: Buffer, decode: (bytes: Uint8Array) => T): { readonly value: T } | undefined {
  const json = line.subarray(9);
  if (line.toString('latin1', 0, 9) !== `${checksum(json)} `) return undefined;
  try {
    return { value: decode(json) };
  } catch {
    return undefined;
  }
}

export function createChangeLog(parts: ChangeLogParts): SyncedLog {
  const { path, changes } = parts;
  let { bytes, isWholeDue } = parts;
  /** `true` if there are changes that are not on disk. */
  let isPending = false;
  let isEnding = false;
  let file: FileHandle | undefined;

  const opened = async (): Promise<FileHandle> => {
    if (file !== undefined) return file;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    file = await open(path, 'a', 0o600);
    await syncFolder(dirname(path));
    return file;
  };
  const close = async (): Promise<void> => {
    const closing = file;
    file = undefined;
    await closing?.close();
  };

  const append = async (change: object): Promise<void> => {
    const line = Buffer.from(lineOf(change));
    const log = await opened();
    await log.appendFile(line);
    await log.datasync();
    bytes += line.length;
  };
  const fold = async (): Promise<void> => {
    await parts.writeWhole();
    const log = await opened();
    await log.truncate(0);
    await log.datasync();
    bytes = 0;
    isWholeDue = false;
  };
  const write = async (): Promise<void> => {
    const change = changes();
    isPending ||= change !== undefined;
    if (!isPending && !(isEnding && bytes > 0)) return;
    try {
      if (change === undefined || isWholeDue || isEnding || bytes > limits.stateLogBytes) await fold();
      else await append(change);
      isPending = false;
    } catch (error) {
      // The end of the log is unknown now.
      isWholeDue = true;
      await close().catch(() => undefined);
      throw error;
    }
  };

  const writer = createLazyWriter(path, write, parts.intervalMs, parts.disk);
  return {
    touch: writer.touch,
    sync: writer.flush,
    flush: async () => {
      isEnding = true;
      writer.touch();
      await writer.flush();
      isEnding = false;
      await close();
    },
  };
}
