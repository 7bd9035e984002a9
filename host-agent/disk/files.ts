/** The agent's files: private to it, replaced as a whole or not at all. */
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { backoffMs, jitter } from '../../lib/backoff.ts';
import type { Log } from '../../lib/log.ts';
import { createNotify } from '../../lib/notify.ts';
import type { StateDisk } from './state-disk.ts';

/**
 * Temp file, fsync, rename, fsync of the folder: after a crash there is the old content or the new,
 * never a part.
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
    // The part that was written would hold space on a disk that has none left.
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
  const folder = await open(dirname(path), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Undefined where there is no such file. */
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
 * What was written before, or undefined where there is nothing, or nothing that can be read: such a
 * file is set aside for a person to look at, and the agent goes on without it.
 */
export async function readDecoded<T>(path: string, decode: (bytes: Uint8Array) => T, log: Log): Promise<T | undefined> {
  const bytes = await readIfPresent(path);
  if (bytes === undefined) return undefined;
  try {
    return decode(bytes);
  } catch (error) {
    log.error('state_file_unreadable', { path, error });
    await rename(path, `${path}.unreadable`).catch((cause: unknown) =>
      log.warn('state_file_not_set_aside', { path, error: cause }),
    );
    return undefined;
  }
}

export interface LazyFile {
  /** The content has changed: write it soon. */
  touch(): void;
  /** Writes what was touched so far; resolves when it is on disk, or when the disk refused it. */
  flush(): Promise<void>;
}

/**
 * A file that follows a value in memory: at most one write in flight, and at most one every
 * `intervalMs`. A write that fails is repeated until the file is written.
 */
export function createLazyFile(path: string, content: () => string, intervalMs: number, disk: StateDisk): LazyFile {
  const hurry = createNotify();
  const failed = createNotify();
  let isDirty = false;
  let writing: Promise<void> | undefined;

  const write = async (): Promise<void> => {
    for (let failures = 0; isDirty;) {
      isDirty = false;
      try {
        await writeAtomically(path, content());
        disk.written(path);
        failures = 0;
      } catch (error) {
        isDirty = true;
        disk.failed(path, error);
        failed.notify();
        await hurry.wait(jitter(backoffMs(failures, disk.retry)));
        failures += 1;
      }
    }
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
      await Promise.race([start(0), failed.wait()]);
    },
  };
}
