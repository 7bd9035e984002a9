/**
 * Whether anything answers over a connection. A NATS server that is cut off from the others keeps
 * its clients' connections and answers their pings, so a connection alone proves nothing: an answer
 * does. Who asks says when it asks and when it is answered; from that follows when to leave a
 * server for another.
 */
import { backoffMs, type BackoffBounds } from '../backoff.ts';
import type { Clock } from '../clock.ts';

export class Answers {
  readonly #clock: Clock;
  #unansweredSinceMs: number | undefined;
  #movesInVain = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Something was asked that only what stands behind the server can answer. */
  asked(): void {
    this.#unansweredSinceMs ??= this.#clock.monotonicMs();
  }

  /** Something was answered, whatever it was. */
  heard(): void {
    this.#unansweredSinceMs = undefined;
    this.#movesInVain = 0;
  }

  /** The connection is another: what was asked over the last one has no answer to wait for. */
  reconnected(): void {
    this.#unansweredSinceMs = undefined;
  }

  /** It was left for another server; until something is heard, that was in vain. */
  moved(): void {
    this.#movesInVain++;
    this.#unansweredSinceMs = undefined;
  }

  /** Since when asks have had no answer: a length of time; 0 where none waits. */
  silentMs(): number {
    return this.#unansweredSinceMs === undefined ? 0 : this.#clock.monotonicMs() - this.#unansweredSinceMs;
  }

  /**
   * Whether it is time to try another server. `spread`, 0 to 1, keeps many clients from moving at
   * the same moment.
   */
  isMoveDue(bounds: BackoffBounds, spread: number): boolean {
    return this.silentMs() >= backoffMs(this.#movesInVain, bounds) * (1 + spread / 2);
  }
}
