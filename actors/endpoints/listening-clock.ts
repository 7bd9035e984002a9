/**
 * Counts the time in which this process could hear hosts. It stops while the process is cut off or
 * stopped: silence in that time says nothing about any host.
 */
import type { Clock } from '../../lib/time/clock.ts';
import { limits } from '../../schemas/limits.ts';

export class ListeningClock {
  readonly #clock: Clock;
  #deafMs = 0;
  #deafSinceMs: number | undefined;
  #connectedSinceMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#connectedSinceMs = clock.monotonicMs();
  }

  nowMs(): number {
    const nowMs = this.#clock.monotonicMs();
    return nowMs - this.#deafMs - (this.#deafSinceMs === undefined ? 0 : nowMs - this.#deafSinceMs);
  }

  /** Called when the connection is lost, and has been for as long as the loss takes to notice. */
  deafen(): void {
    if (this.#deafSinceMs !== undefined) return;
    this.#deafSinceMs = Math.max(this.#connectedSinceMs, this.#clock.monotonicMs() - limits.deafUnnoticedMs);
  }

  /**
   * Called when the connection is back. Silence continues from where it was: a flapping link hides
   * no host.
   */
  listen(): void {
    if (this.#deafSinceMs === undefined) this.deafen();
    this.#connectedSinceMs = this.#clock.monotonicMs();
    this.#deafMs += this.#connectedSinceMs - (this.#deafSinceMs ?? this.#connectedSinceMs);
    this.#deafSinceMs = undefined;
  }

  /** Called when the process itself was stopped for this long. */
  stood(ms: number): void {
    if (this.#deafSinceMs === undefined) this.#deafMs += ms;
  }
}
