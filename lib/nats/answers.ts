/**
 * Tracks whether anything answers over a connection. A NATS server that is cut off from the others
 * keeps its clients' connections and answers their pings, so only an answer from behind the server
 * proves anything. Callers say when they ask and when they are answered; this decides when to leave
 * a server for another.
 */
import { backoffMs, type BackoffBounds } from '../time/backoff.ts';
import type { Clock } from '../time/clock.ts';

export class Answers {
  readonly #clock: Clock;
  #unansweredSinceMs: number | undefined;
  #movesInVain = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Called for an ask that only something behind the server can answer. */
  asked(): void {
    this.#unansweredSinceMs ??= this.#clock.monotonicMs();
  }

  /** Called for any answer. */
  heard(): void {
    this.#unansweredSinceMs = undefined;
    this.#movesInVain = 0;
  }

  /** Called for a new connection: asks over the last one will get no answer. */
  reconnected(): void {
    this.#unansweredSinceMs = undefined;
  }

  /** Called after a move to another server. The move counts as vain until something answers. */
  moved(): void {
    this.#movesInVain++;
    this.#unansweredSinceMs = undefined;
  }

  /** Time for which asks have had no answer; 0 if none waits. */
  silentMs(): number {
    return this.#unansweredSinceMs === undefined ? 0 : this.#clock.monotonicMs() - this.#unansweredSinceMs;
  }

  /**
   * True if it is time to try another server. `spread`, 0 to 1, keeps many clients from moving at
   * the same moment.
   */
  isMoveDue(bounds: BackoffBounds, spread: number): boolean {
    return this.silentMs() >= backoffMs(this.#movesInVain, bounds) * (1 + spread / 2);
  }
}
