/** Time as a parameter: only a `main.ts` reads the system's clocks. */

export interface Clock {
  /** Wall clock, in milliseconds since 1970: for records and for people. It may step. */
  nowMs(): number;
  /** Milliseconds of a clock that never steps: for leases, deadlines and back-off. */
  monotonicMs(): number;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

/**
 * Milliseconds since 1970 that equal the wall clock now and never step: for waits that people see.
 */
export function steadyTime(clock: Clock): () => number {
  const offsetMs = clock.nowMs() - clock.monotonicMs();
  return () => offsetMs + clock.monotonicMs();
}
