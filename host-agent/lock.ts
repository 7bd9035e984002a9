/**
 * Allows one agent for a state folder, and one for a host; on Linux alone, see
 * lib/process/name-lock.ts.
 */
import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { connect } from 'node:net';
import type { Stoppable } from '../lib/lifecycle.ts';
import { hasNameLocks, nameLockPath, takeNameLock } from '../lib/process/name-lock.ts';
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

/** `true` if an agent runs on this folder. Takes no lock, so a start at this moment succeeds. */
export const isStateDirLocked = (stateDir: string): Promise<boolean> => isLocked(stateDirKey(stateDir));

/** `true` if an agent of this host runs in this network namespace, on whatever folder. */
export const isHostLocked = (owner: Owner): Promise<boolean> => isLocked(hostKey(owner));

const nameOf = (key: string): string => `agent-${createHash('sha256').update(key).digest('hex').slice(0, 32)}`;

const isLocked = (key: string): Promise<boolean> =>
  new Promise((resolve) => {
    if (!hasNameLocks) return resolve(false);
    const socket = connect(nameLockPath(nameOf(key)));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });

async function lock(key: string, what: string): Promise<Stoppable> {
  const held = await takeNameLock(nameOf(key));
  if (held === undefined) throw new AlreadyRunning(what);
  return { name: 'lock', deadlineMs: limits.stopPartMs, stop: held.release };
}
