/**
 * A lock between processes. It is a folder, because creating one either succeeds or fails. The
 * folder names its owner, so that a lock left by a killed process is recognised.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { randomBytes } from 'node:crypto';
import Type, { type Static } from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { sleep } from '../../lib/time/backoff.ts';
import { isAlive, processName } from './proc.ts';

/**
 * A lock folder without an owner file for this long was left by a process that died between
 * creating the two.
 */
const unsignedGraceMs = 5_000;
const pollMs = 100;

export interface Lock {
  release(): void;
}

export type LockState = { readonly held: false } | { readonly held: true; readonly pid: number | undefined };

/**
 * On a system without /proc only the pid is known. Then a reused pid keeps a dead owner's lock
 * until the deadline.
 */
const Pid = Type.Object({ pid: Type.Integer() });
const Owner = Type.Union([Type.Object({ ...Pid.properties, startTicks: Type.String(), bootId: Type.String() }), Pid]);
type Owner = Static<typeof Owner>;
const decodeOwner = decoder(Owner);

function lives(owner: Owner): boolean {
  if ('startTicks' in owner) return isAlive(owner);
  try {
    return process.kill(owner.pid, 0);
  } catch {
    return false;
  }
}

/** The state of a lock. A lock whose owner has ended is not held. */
export function lockState(path: string, nowMs: number): LockState {
  try {
    const owner = decodeOwner(readFileSync(join(path, 'owner.json')));
    return lives(owner) ? { held: true, pid: owner.pid } : { held: false };
  } catch {
    try {
      return nowMs - statSync(path).mtimeMs < unsignedGraceMs ? { held: true, pid: undefined } : { held: false };
    } catch {
      return { held: false };
    }
  }
}

/** Takes the lock now; undefined if a running process holds it. */
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
 * Clears a dead owner's lock. The folder is renamed before it is removed: if two processes find the
 * same dead owner, the slower one may rename the faster one's new lock. It sees that the lock is
 * held, and moves it back.
 */
function bury(path: string): void {
  const grave = `${path}.stale-${randomBytes(6).toString('hex')}`;
  try {
    renameSync(path, grave);
    if (lockState(grave, Date.now()).held) renameSync(grave, path);
    else rmSync(grave, { recursive: true, force: true });
  } catch {
    // Another process was faster.
  }
}

/** Waits for the lock, for at most `deadlineMs`. `what` names the purpose in the error. */
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
