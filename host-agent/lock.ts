/**
 * One agent to a state folder. On Linux the lock is an abstract socket named after the folder: the kernel drops it with the
 * process, so that a kill leaves nothing stale. Elsewhere there is no such thing, and no lock.
 */
import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { createServer } from 'node:net';
import type { Stoppable } from '../lib/lifecycle.ts';

export class AlreadyRunning extends Error {
  constructor(stateDir: string) {
    super(`another agent runs on ${stateDir}`);
    this.name = 'AlreadyRunning';
  }
}

/** @throws AlreadyRunning */
export async function lockStateDir(stateDir: string): Promise<Stoppable> {
  const server = createServer();
  const part: Stoppable = {
    name: 'lock',
    deadlineMs: 1000,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
  if (process.platform !== 'linux') return { ...part, stop: () => Promise.resolve() };
  const name = createHash('sha256').update(realpathSync(stateDir)).digest('hex').slice(0, 32);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'EADDRINUSE' ? new AlreadyRunning(stateDir) : error),
    );
    server.listen(`\0longshore-agent-${name}`, resolve);
  });
  server.unref();
  return part;
}
