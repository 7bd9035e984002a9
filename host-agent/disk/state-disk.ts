/**
 * The disk under the agent's state folder. A full or read-only disk is a fault of the host and
 * stops nothing: the agent works from memory, and writes each file as soon as the disk accepts it
 * again.
 */
import { messageOf } from '../../lib/error-message.ts';
import type { BackoffBounds } from '../../lib/time/backoff.ts';
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
      const why = messageOf(error);
      faults.raise(
        'state_unwritable',
        `the agent cannot write its state and works from memory; free space or make the disk writable: ${why}`,
      );
    },
    written: (path) => {
      if (unwritten.delete(path) && unwritten.size === 0) faults.clear('state_unwritable');
    },
  };
}
