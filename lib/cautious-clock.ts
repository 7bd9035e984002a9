/**
 * A wall clock for deletions. A wall clock may jump by days; what is deleted by it then is lost. This one runs ahead only
 * as far as the monotonic clock shows that time passed, and never past the wall clock. It starts from the newest time that
 * is on record, and takes the wall clock's word when the two have agreed for a day (ADR 13).
 */
import { limits } from '../schemas/limits.ts';
import type { Clock } from './clock.ts';

/** Clocks differ in speed by less than this; a wall clock that was set forward is caught up with at this rate. */
const drift = 1 / 1000;

export class CautiousClock {
  readonly #clock: Clock;
  #trustedMs: number;
  #readAtMs: number;
  /** Wall minus monotonic: it changes when the wall clock is set. */
  #offsetMs: number;
  #offsetSinceMs: number;

  /**
   * @param newestMs the newest time on record; undefined where there is none, and nothing to delete
   * @param since a clock that has run for longer: this one starts no later, so a load after a jump does not believe it
   */
  constructor(clock: Clock, newestMs: number | undefined, since?: CautiousClock) {
    this.#clock = clock;
    const wallMs = clock.nowMs();
    this.#readAtMs = clock.monotonicMs();
    this.#offsetMs = wallMs - this.#readAtMs;
    this.#offsetSinceMs = this.#readAtMs;
    const onRecordMs = newestMs === undefined ? wallMs : newestMs + limits.clockTrustMs;
    this.#trustedMs = Math.min(wallMs, onRecordMs, since?.nowMs() ?? wallMs);
  }

  nowMs(): number {
    const wallMs = this.#clock.nowMs();
    const monotonicMs = this.#clock.monotonicMs();
    const passedMs = Math.max(0, monotonicMs - this.#readAtMs) * (1 + drift);
    this.#readAtMs = monotonicMs;
    const offsetMs = wallMs - monotonicMs;
    if (Math.abs(offsetMs - this.#offsetMs) > limits.clockStepMs) {
      this.#offsetMs = offsetMs;
      this.#offsetSinceMs = monotonicMs;
    }
    const isSettled = monotonicMs - this.#offsetSinceMs >= limits.clockSettleMs;
    this.#trustedMs = Math.max(this.#trustedMs, isSettled ? wallMs : Math.min(wallMs, this.#trustedMs + passedMs));
    return Math.min(wallMs, this.#trustedMs);
  }
}
