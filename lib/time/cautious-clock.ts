/**
 * A wall clock for deletions. A wall clock may jump by days, and what is deleted by mistake is
 * lost. This clock is never ahead of the wall clock, follows it back at once, and moves forward
 * only as fast as the monotonic clock. The next process continues from its last reading. So
 * something stamped by the wall clock is a week old by this clock only after a week has passed,
 * however wrong any clock was meanwhile (ADR 13).
 */
import { hours, minutes } from '../../schemas/limits/units.ts';
import type { Clock } from './clock.ts';

/** Two readings of wall clocks agree if the second is at most this much later than the first. */
const clockTrustMs = 2 * hours;
/** A change of the wall clock against the monotonic one that counts as a jump. */
const clockStepMs = 1 * minutes;

/**
 * Clocks differ in speed by less than this. At this rate the clock catches up with a wall clock
 * that was set forward.
 */
const drift = 1 / 1000;

/** A reading, stored with what it dates, so that another process can continue from it. */
export interface ClockReading {
  readonly atMs: number;
  readonly wallMs: number;
  /** Time for which the wall clocks of all readers have agreed. */
  readonly agreedMs: number;
}

/** The reading when no time is known: nothing is old yet. */
export const noReading: ClockReading = { atMs: 0, wallMs: 0, agreedMs: 0 };

export class CautiousClock {
  readonly #clock: Clock;
  readonly #settleMs: number;
  #trustedMs: number;
  #readAtMs: number;
  /** Wall time minus monotonic time; it changes when the wall clock is set. */
  #offsetMs: number;
  #agreedMs: number;

  /**
   * @param settleMs wall clocks that agree for this long are trusted; nothing may need to be kept
   * longer
   * @param from the last reading; `undefined` if nothing was dated yet
   */
  constructor(clock: Clock, settleMs: number, from?: ClockReading) {
    this.#clock = clock;
    this.#settleMs = settleMs;
    const wallMs = clock.nowMs();
    this.#readAtMs = clock.monotonicMs();
    this.#offsetMs = wallMs - this.#readAtMs;
    const sinceMs = wallMs - (from?.wallMs ?? wallMs);
    const isAgreed = sinceMs >= -clockStepMs && sinceMs <= clockTrustMs;
    this.#agreedMs = isAgreed ? (from?.agreedMs ?? 0) : 0;
    this.#trustedMs = Math.min(wallMs, from?.atMs ?? wallMs);
  }

  nowMs(): number {
    return this.read().atMs;
  }

  read(): ClockReading {
    const wallMs = this.#clock.nowMs();
    const monotonicMs = this.#clock.monotonicMs();
    const passedMs = Math.max(0, monotonicMs - this.#readAtMs);
    this.#readAtMs = monotonicMs;
    this.#agreedMs += passedMs;
    const offsetMs = wallMs - monotonicMs;
    if (Math.abs(offsetMs - this.#offsetMs) > clockStepMs) {
      this.#offsetMs = offsetMs;
      this.#agreedMs = 0;
    }
    const isSettled = this.#agreedMs >= this.#settleMs;
    this.#trustedMs = isSettled ? wallMs : Math.min(wallMs, this.#trustedMs + passedMs * (1 + drift));
    return { atMs: this.#trustedMs, wallMs, agreedMs: Math.min(this.#agreedMs, this.#settleMs) };
  }
}
