/** Waits: with a deadline, with a signal, with growing pauses. */
import { setTimeout as delay } from 'node:timers/promises';

export interface BackoffBounds {
  readonly minMs: number;
  readonly maxMs: number;
}

/**
 * Pause before attempt number `attempt` (0 is the first retry): doubling, bounded, without jitter.
 */
export const backoffMs = (attempt: number, { minMs, maxMs }: BackoffBounds): number =>
  Math.min(maxMs, minMs * 2 ** Math.min(attempt, 30));

/**
 * A random time between half of `ms` and all of it, so that many that failed together do not retry
 * together.
 */
export const jitter = (ms: number, random: () => number = Math.random): number => ms * (0.5 + random() / 2);

/** Resolves after `ms`, or at once when the signal aborts; never rejects. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  try {
    await delay(ms, undefined, signal === undefined ? {} : { signal });
  } catch {
    // If the signal aborts, the caller looks at it.
  }
}

/** Resolves when it aborts. */
export const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
    if (signal.aborted) resolve();
  });

/**
 * Aborts with any of the signals, and after `ms`. `AbortSignal.any` alone does not keep the time:
 * Node 20 forgets an `AbortSignal.timeout` that only it refers to (nodejs/node#57736).
 */
export function abortingWithin(ms: number, ...signals: readonly AbortSignal[]): AbortSignal {
  const deadline = AbortSignal.timeout(ms);
  // Node keeps a signal that has a listener until its time has come.
  deadline.addEventListener('abort', () => {}, { once: true });
  return AbortSignal.any([deadline, ...signals]);
}

export class DeadlineError extends Error {
  constructor(what: string, ms: number) {
    super(`${what}: no result within ${ms} ms`);
    this.name = 'DeadlineError';
  }
}

/**
 * Settles as the promise does, or rejects with a DeadlineError after `ms`. It does not stop the
 * work behind the promise: give that a signal.
 */
export async function within<T>(promise: Promise<T>, ms: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DeadlineError(what, ms)), ms);
  });
  try {
    return await Promise.race([promise, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
