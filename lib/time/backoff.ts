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

/** Pauses with jitter that grow, for `retry`. */
export function jittered(bounds: BackoffBounds): (attempt: number) => number {
  return (attempt) => jitter(backoffMs(attempt, bounds));
}

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
 * Does the work with a controller that aborts with any of the signals, after `ms`, and when the
 * work is over, so nothing that it began outlives it. In place of `AbortSignal.any`: on Node 20
 * that forgets an `AbortSignal.timeout` (nodejs/node#57736), and each call leaves 70 bytes at a
 * signal that lasts, on Node 22 180 (nodejs/node#54614).
 */
export async function withAbort<T>(
  signals: readonly AbortSignal[],
  work: (controller: AbortController) => Promise<T>,
  ms?: number,
): Promise<T> {
  const controller = new AbortController();
  const abort = (): void => controller.abort(signals.find(({ aborted }) => aborted)?.reason);
  const late = (): void => controller.abort(new DOMException(`not done within ${ms} ms`, 'TimeoutError'));
  const timer = ms === undefined ? undefined : setTimeout(late, ms);
  for (const signal of signals) signal.addEventListener('abort', abort, { once: true });
  if (signals.some(({ aborted }) => aborted)) abort();
  try {
    return await work(controller);
  } finally {
    clearTimeout(timer);
    for (const signal of signals) signal.removeEventListener('abort', abort);
    controller.abort();
  }
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
