/**
 * Allows one agent for a state folder, and one for a host. On Linux the lock is an abstract socket:
 * the kernel frees it with the process, so a kill leaves nothing stale. Other systems have no such
 * socket, and no lock.
 */
import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { createServer } from 'node:net';
import type { Stoppable } from '../lib/lifecycle.ts';
import { limits } from '../schemas/limits.ts';
import type { Owner } from './docker/ownership.ts';

export class AlreadyRunning extends Error {
  constructor(what: string) {
    super(`another agent runs ${what}`);
    this.name = 'AlreadyRunning';
  }
}

/** @throws AlreadyRunning */
export const lockStateDir = (stateDir: string): Promise<Stoppable> =>
  lock(process.platform === 'linux' ? realpathSync(stateDir) : stateDir, `on ${stateDir}`);

/**
 * Two agents with copies of one state folder would fight over the same containers.
 * @throws AlreadyRunning
 */
export const lockHost = ({ cluster, host }: Owner): Promise<Stoppable> =>
  lock(`host ${cluster} ${host}`, `as host ${host}, on another state folder`);

async function lock(key: string, what: string): Promise<Stoppable> {
  const server = createServer();
  const part: Stoppable = {
    name: 'lock',
    deadlineMs: limits.stopPartMs,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
  if (process.platform !== 'linux') return { ...part, stop: () => Promise.resolve() };
  const name = createHash('sha256').update(key).digest('hex').slice(0, 32);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'EADDRINUSE' ? new AlreadyRunning(what) : error),
    );
    server.listen(`\0longshore-agent-${name}`, resolve);
  });
  server.unref();
  return part;
}
