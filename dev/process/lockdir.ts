/**
 * A lock between processes: a folder, since making one either succeeds or not. It names its owner,
 * so that the lock of a process that was killed can be told from one that is held.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { sleep } from '../../lib/backoff.ts';
import { isAlive, processName, type ProcessName } from './proc.ts';

/** A folder without an owner this old was left between its making and its signing. */
const unsignedGraceMs = 5_000;
const pollMs = 100;

export interface Lock {
  release(): void;
}

export type LockState = { readonly held: false } | { readonly held: true; readonly pid: number | undefined };

/**
 * Only a pid where the system has no /proc: then a reused pid can hold a dead owner's lock until
 * the deadline.
 */
type Owner = ProcessName | { readonly pid: number };

function lives(owner: Owner): boolean {
  if ('startTicks' in owner) return isAlive(owner);
  try {
    return process.kill(owner.pid, 0);
  } catch {
    return false;
  }
}

/** Who holds the lock; a lock whose owner is dead is not held. */
export function lockState(path: string, nowMs: number): LockState {
  try {
    const owner = JSON.parse(readFileSync(join(path, 'owner.json'), 'utf8')) as Owner;
    return lives(owner) ? { held: true, pid: owner.pid } : { held: false };
  } catch {
    try {
      return nowMs - statSync(path).mtimeMs < unsignedGraceMs ? { held: true, pid: undefined } : { held: false };
    } catch {
      return { held: false };
    }
  }
}

/** Takes the lock now, or answers undefined when a living process holds it. */
export function tryLock(path: string): Lock | undefined {
  mkdirSync(dirname(path), { recursive: true });
  for (let attempt = 0; attempt < 3; attempt++) {
    try {
      mkdirSync(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      if (lockState(path, Date.now()).held) return undefined;
      bury(path);
      continue;
    }
    writeFileSync(join(path, 'owner.json'), JSON.stringify(processName(process.pid) ?? { pid: process.pid }));
    return { release: () => rmSync(path, { recursive: true, force: true }) };
  }
  return undefined;
}

/**
 * Clears a dead owner's lock. It is moved away before it is removed: of two that find the same dead
 * owner, the slower one may have moved the faster one's new lock, sees so, and puts it back.
 */
function bury(path: string): void {
  const grave = `${path}.stale-${randomBytes(6).toString('hex')}`;
  try {
    renameSync(path, grave);
    if (lockState(grave, Date.now()).held) renameSync(grave, path);
    else rmSync(grave, { recursive: true, force: true });
  } catch {
    // The other was faster.
  }
}

/** Waits for the lock, at most `deadlineMs`. */
export async function takeLock(path: string, deadlineMs: number, what: string): Promise<Lock> {
  const endMs = performance.now() + deadlineMs;
  for (;;) {
    const lock = tryLock(path);
    if (lock !== undefined) return lock;
    if (performance.now() > endMs) {
      const state = lockState(path, Date.now());
      const pid = state.held ? state.pid : undefined;
      throw new Error(`${what}: another process (${pid ?? 'unknown'}) still holds ${path} after ${deadlineMs} ms`);
    }
    await sleep(pollMs);
  }
}
