/** Work at intervals. It begins with a pause and never overlaps with itself. */
import { jitter, sleep } from './backoff.ts';

/** Does the work after each pause, until the signal aborts or the work throws. */
export async function every(
  pauseMs: () => number,
  work: () => Promise<unknown> | void,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await sleep(pauseMs(), signal);
    if (signal.aborted) return;
    await work();
  }
}

export interface Rounds {
  /** Aborts when `stop` is called. */
  readonly signal: AbortSignal;
  start(round: () => Promise<void>): void;
  /** Resolves when the current round has ended. */
  stop(): Promise<void>;
}

/**
 * Each pause is between half of `intervalMs` and all of it, so that many processes do not work at
 * once.
 */
export function createRounds(intervalMs: number): Rounds {
  const ending = new AbortController();
  const { signal } = ending;
  let running: Promise<void> = Promise.resolve();
  return {
    signal,
    start(round) {
      running = every(() => jitter(intervalMs), round, signal);
    },
    async stop() {
      ending.abort();
      await running;
    },
  };
}
