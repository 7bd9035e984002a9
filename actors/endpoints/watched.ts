/**
 * Containers whose status somebody asked for a short time ago. Only their changes are announced: a
 * gateway that waits for a status asks first, and asks again at intervals. A new owner knows of
 * nobody until then.
 */
import type { ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { Clock } from '../../lib/time/clock.ts';

export class Watched {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** By container, until when; in the order of the last asks. */
  readonly #untilMs = new Map<ContainerId, number>();

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** Somebody asked for the status. Bounded: the one that was asked for longest ago goes first. */
  asked(id: ContainerId): void {
    this.#untilMs.delete(id);
    this.#untilMs.set(id, this.#clock.monotonicMs() + limits.watchedMs);
    const [oldest] = this.#untilMs.keys();
    if (this.#untilMs.size > limits.watchedContainers && oldest !== undefined) this.#untilMs.delete(oldest);
  }

  has(id: ContainerId): boolean {
    const untilMs = this.#untilMs.get(id);
    if (untilMs === undefined) return false;
    if (untilMs > this.#clock.monotonicMs()) return true;
    this.#untilMs.delete(id);
    return false;
  }
}
