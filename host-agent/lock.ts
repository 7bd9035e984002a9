/**
 * Allows one agent for a state folder, and one for a host. On Linux the lock is an abstract socket:
 * the kernel frees it with the process, so a kill leaves nothing stale. Other systems have no such
 * socket, and no lock.
 */
import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import type { Stoppable } from '../lib/lifecycle.ts';
import { limits } from '../schemas/limits.ts';
import type { Owner } from './docker/ownership.ts';

export class AlreadyRunning extends Error {
  constructor(what: string) {
    super(`another agent runs ${what}`);
    this.name = 'AlreadyRunning';
  }
}

const stateDirKey = (stateDir: string): string => (process.platform === 'linux' ? realpathSync(stateDir) : stateDir);
const hostKey = ({ cluster, host }: Owner): string => `host ${cluster} ${host}`;

/** @throws AlreadyRunning */
export const lockStateDir = (stateDir: string): Promise<Stoppable> => lock(stateDirKey(stateDir), `on ${stateDir}`);

/**
 * Two agents with copies of one state folder would fight over the same containers.
 * @throws AlreadyRunning
 */
export const lockHost = (owner: Owner): Promise<Stoppable> =>
  lock(hostKey(owner), `as host ${owner.host}, on another state folder`);

/** Whether an agent runs on this folder. Takes no lock, so a start at this moment succeeds. */
export const isStateDirLocked = (stateDir: string): Promise<boolean> => isLocked(stateDirKey(stateDir));

/** Whether an agent of this host runs in this network namespace, on whatever folder. */
export const isHostLocked = (owner: Owner): Promise<boolean> => isLocked(hostKey(owner));

const socketOf = (key: string): string =>
  `\0longshore-agent-${createHash('sha256').update(key).digest('hex').slice(0, 32)}`;

const isLocked = (key: string): Promise<boolean> =>
  new Promise((resolve) => {
    if (process.platform !== 'linux') return resolve(false);
    const socket = connect(socketOf(key));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });

async function lock(key: string, what: string): Promise<Stoppable> {
  // The doctor connects, to see whether the lock is held.
  const server = createServer((socket) => void socket.destroy());
  const part: Stoppable = {
    name: 'lock',
    deadlineMs: limits.stopPartMs,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
  if (process.platform !== 'linux') return { ...part, stop: () => Promise.resolve() };
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'EADDRINUSE' ? new AlreadyRunning(what) : error),
    );
    server.listen(socketOf(key), resolve);
  });
  server.unref();
  return part;
}
