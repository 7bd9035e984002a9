/** Time as a parameter: nothing below a `main.ts` reads a clock of its own. */

export interface Clock {
  /** Milliseconds since 1970, as the wall shows them: for records and for people. May step. */
  nowMs(): number;
  /** Milliseconds of a clock that never steps: for leases, deadlines and back-off. */
  monotonicMs(): number;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

/**
 * Milliseconds since 1970 that follow the wall's at this moment and never step: for waits that are
 * shown to people.
 */
export function steadyTime(clock: Clock): () => number {
  const offsetMs = clock.nowMs() - clock.monotonicMs();
  return () => offsetMs + clock.monotonicMs();
}

/** RFC 3339, UTC, milliseconds. */
export const timestamp = (ms: number): string => new Date(ms).toISOString();
