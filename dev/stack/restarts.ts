/** Decides when a part that ended is started again. Pure: the supervisor waits and starts. */
import { backoffMs } from '../../lib/time/backoff.ts';

/** A part that ran for this long is stable: its next end counts as the first again. */
export const steadyMs = 30_000;
const pauseBounds = { minMs: 200, maxMs: 30_000 };

export interface Restart {
  /** Consecutive ends, including this one. A failed start counts as an end. */
  readonly ends: number;
  /** Time to wait before the next start. */
  readonly pauseMs: number;
}

/** @param ranMs time for which the part ran before it ended; 0 if it did not start. */
export function nextStart(endsBefore: number, ranMs: number): Restart {
  const ends = ranMs >= steadyMs ? 1 : endsBefore + 1;
  return { ends, pauseMs: backoffMs(ends - 1, pauseBounds) };
}
