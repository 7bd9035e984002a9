/** The agent's files: private to it, replaced as a whole or not at all. */
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { jittered, withAbort } from '../../lib/time/backoff.ts';
import { retry } from '../../lib/time/retry.ts';
import type { Log } from '../../lib/log.ts';
import { createNotify } from '../../lib/notify.ts';
import type { StateDisk } from './state-disk.ts';

/**
 * Temporary file, fsync, rename, fsync of the folder: after a crash the file has the old content or
 * the new, never a part.
 */
export async function writeAtomically(path: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = join(dirname(path), `.${basename(path)}.tmp`);
  try {
    const file = await open(temporary, 'w', 0o600);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    // A partial file would take space on a disk that has none left.
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
  await syncFolder(dirname(path));
}

/** The names in a folder are on disk, such as that of a file that was just made. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** `undefined` if there is no such file. */
export async function readIfPresent(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

export const removeFile = (path: string): Promise<void> => rm(path, { force: true });

/**
 * The content of a state file; `undefined` if there is none. A file that cannot be decoded is
 * renamed for an operator to examine, and the agent continues without it.
 */
export async function readDecoded<T>(path: string, decode: (bytes: Uint8Array) => T, log: Log): Promise<T | undefined> {
  const bytes = await readIfPresent(path);
  if (bytes === undefined) return undefined;
  try {
    return decode(bytes);
  } catch (error) {
    log.error('state_file_unreadable', { path, error });
    await rename(path, `${path}.unreadable`).catch((cause: unknown) =>
      log.warn('state_file_set_aside_failed', { path, error: cause }),
    );
    return undefined;
  }
}

export interface LazyFile {
  /** Marks the content as changed; a write follows soon. */
  touch(): void;
  /** Writes pending changes; resolves when they are on disk, or when the disk refused them. */
  flush(): Promise<void>;
}

/** A file that follows a value in memory. */
export const createLazyFile = (path: string, content: () => string, intervalMs: number, disk: StateDisk): LazyFile =>
  createLazyWriter(path, () => writeAtomically(path, content()), intervalMs, disk);

/**
 * Writes changes: at most one write in flight, and one every `intervalMs`. A failed write is
 * repeated until it succeeds.
 */
export function createLazyWriter(
  path: string,
  writeNow: () => Promise<void>,
  intervalMs: number,
  disk: StateDisk,
): LazyFile {
  const hurry = createNotify();
  const failed = createNotify();
  let isDirty = false;
  let writing: Promise<void> | undefined;

  const writeOnce = async (): Promise<true> => {
    isDirty = false;
    await writeNow();
    disk.written(path);
    return true;
  };
  const onFailure = (error: unknown): void => {
    isDirty = true;
    disk.failed(path, error);
    failed.notify();
  };
  const write = async (): Promise<void> => {
    while (isDirty) await retry(writeOnce, { pauseMs: jittered(disk.retry), onFailure, pause: hurry.wait });
  };
  const start = (pauseMs: number): Promise<void> =>
    (writing ??= hurry
      .wait(pauseMs)
      .then(write)
      .finally(() => {
        writing = undefined;
      }));

  return {
    touch: () => {
      isDirty = true;
      void start(intervalMs);
    },
    flush: async () => {
      hurry.notify();
      if (writing === undefined && !isDirty) return;
      await withAbort([], ({ signal }) => Promise.race([start(0), failed.wait(undefined, signal)]));
    },
  };
}
