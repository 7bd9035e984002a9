/** When something that ended is started again. Pure: the supervisor waits and starts. */
import { backoffMs } from '../../lib/backoff.ts';

/**
 * Something that ran for this long is not one that keeps ending: its next end counts as the first.
 */
export const steadyMs = 30_000;
const pauseBounds = { minMs: 200, maxMs: 30_000 };

export interface Restart {
  /** Ends in a row, this one included; a start that failed is an end too. */
  readonly ends: number;
  /** How long to wait before the next start. */
  readonly pauseMs: number;
}

/** @param ranMs how long it ran before it ended; 0 where it did not start. */
export function nextStart(endsBefore: number, ranMs: number): Restart {
  const ends = ranMs >= steadyMs ? 1 : endsBefore + 1;
  return { ends, pauseMs: backoffMs(ends - 1, pauseBounds) };
}
