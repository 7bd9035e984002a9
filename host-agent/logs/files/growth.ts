/** Waits until a file grows or is renamed, by the kernel's events (inotify). */
import { watch, type FSWatcher } from 'node:fs';
import { sleep } from '../../../lib/time/backoff.ts';
import { createNotify } from '../../../lib/notify.ts';
import { limits } from '../../../schemas/limits.ts';

export interface Growth {
  /**
   * Changes from now on end the next wait.
   * @returns `true` if they did not before, so that the reader must first read the file once more
   */
  arm(): boolean;
  /**
   * Ends the watch: while a file is read often anyway, no event is needed for each of its lines.
   */
  disarm(): void;
  /** Resolves after a change, when the signal aborts, and after a while in any case. */
  wait(signal: AbortSignal): Promise<void>;
}

export function createGrowth(path: string): Growth {
  const changed = createNotify();
  let watcher: FSWatcher | undefined;
  let isChanged = false;
  /** The last wait ended without a change. */
  let isCalm = false;

  const disarm = (): void => {
    watcher?.close();
    watcher = undefined;
  };

  return {
    arm: () => {
      if (watcher !== undefined) return false;
      try {
        watcher = watch(path, { persistent: false }, (event) => {
          // The path names another file now.
          if (event === 'rename') disarm();
          isChanged = true;
          changed.notify();
        });
        watcher.on('error', disarm);
        return true;
      } catch {
        // The file is just being renamed, or this user has too many watches: see `wait`.
        return false;
      }
    },
    disarm,
    wait: async (signal) => {
      if (!isCalm) await sleep(limits.logFilePauseMs, signal);
      const ms = watcher === undefined ? limits.logFileUnwatchedMs : limits.logFileIdleMs;
      if (!isChanged) await changed.wait(ms, signal);
      isCalm = !isChanged;
      isChanged = false;
    },
  };
}
