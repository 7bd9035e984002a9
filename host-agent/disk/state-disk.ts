/**
 * The disk under the agent's state folder. A disk that is full or read-only is a fault of the host
 * and stops nothing: the agent works from memory, and each file is written as soon as that is
 * possible again.
 */
import type { BackoffBounds } from '../../lib/backoff.ts';
import type { Log } from '../../lib/log.ts';
import type { Faults } from '../faults.ts';

export interface StateDisk {
  readonly retry: BackoffBounds;
  failed(path: string, error: unknown): void;
  written(path: string): void;
}

export function createStateDisk(faults: Faults, retry: BackoffBounds, log: Log): StateDisk {
  const unwritten = new Set<string>();
  return {
    retry,
    failed: (path, error) => {
      log.debug('state_file_unwritable', { path, error });
      unwritten.add(path);
      const why = error instanceof Error ? error.message : String(error);
      faults.raise('state_unwritable', `the agent cannot write its state and works from memory; free space: ${why}`);
    },
    written: (path) => {
      if (unwritten.delete(path) && unwritten.size === 0) faults.clear('state_unwritable');
    },
  };
}
