/** Work at intervals. It begins with a pause and never overlaps with itself. */
import { jitter, sleep } from './backoff.ts';

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

  async function run(round: () => Promise<void>): Promise<void> {
    while (!signal.aborted) {
      await sleep(jitter(intervalMs), signal);
      if (!signal.aborted) await round();
    }
  }

  return {
    signal,
    start(round) {
      running = run(round);
    },
    async stop() {
      ending.abort();
      await running;
    },
  };
}
