/** Waiting: with a deadline, with a signal, with growing pauses. */
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

/** Between half and the whole of `ms`, so that many that failed together do not return together. */
export const jitter = (ms: number, random: () => number = Math.random): number => ms * (0.5 + random() / 2);

/** Resolves after `ms`, or at once when the signal aborts; never rejects. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  try {
    await delay(ms, undefined, signal === undefined ? {} : { signal });
  } catch {
    // Aborted: whoever waits looks at the signal.
  }
}

export class DeadlineError extends Error {
  constructor(what: string, ms: number) {
    super(`${what}: no result within ${ms} ms`);
    this.name = 'DeadlineError';
  }
}

/**
 * The promise's own outcome, or a DeadlineError after `ms`. The work behind it is not stopped: give
 * it a signal for that.
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
