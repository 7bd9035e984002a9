/** The state folder, as commands that write to it need it: there, writable, and theirs alone. */
import { mkdirSync } from 'node:fs';
import { messageOf } from '../../lib/error-message.ts';
import { ConfigurationError } from '../../lib/config.ts';
import type { Stoppable } from '../../lib/lifecycle.ts';
import { AlreadyRunning, lockStateDir } from '../lock.ts';

/**
 * Makes the folder, and locks it.
 * @throws ConfigurationError
 */
export async function takeStateFolder(stateDir: string): Promise<Stoppable> {
  await writtenOrRefused(stateDir, () => mkdirSync(stateDir, { recursive: true, mode: 0o700 }));
  return lockOrRefuse(lockStateDir(stateDir));
}

/** @throws ConfigurationError where another agent has the lock. */
export async function lockOrRefuse(locking: Promise<Stoppable>): Promise<Stoppable> {
  try {
    return await locking;
  } catch (error) {
    if (error instanceof AlreadyRunning) throw new ConfigurationError([`STATE_DIR: ${error.message}`]);
    throw error;
  }
}

/**
 * At the first start the host's key must be on disk: the join token works once, for this key. An
 * agent without its key needs a new token to come back; until then nothing stops its containers.
 */
export async function writtenOrRefused<T>(stateDir: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ConfigurationError) throw error;
    const why = messageOf(error);
    throw new ConfigurationError([
      `STATE_DIR: the host's key cannot be kept in ${stateDir} (${why}): free space on its disk or make it writable, ` +
        'and start the agent again; the join token has not been used',
    ]);
  }
}
