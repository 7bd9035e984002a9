/**
 * Containers whose status somebody asked for a short time ago. Only their changes are announced: a
 * gateway that waits for a status asks first, and asks again at intervals. A new owner knows of
 * nobody until then.
 */
import { LRUCache } from 'lru-cache';
import type { ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { Clock } from '../../lib/time/clock.ts';

export class StatusWatchers {
  readonly #asked: LRUCache<ContainerId, true>;

  constructor({ monotonicMs }: Pick<Clock, 'monotonicMs'>) {
    const perf = { now: () => monotonicMs() };
    this.#asked = new LRUCache({ max: limits.watchedContainers, ttl: limits.watchedMs, ttlResolution: 0, perf });
  }

  /** Somebody asked for the status. Bounded: the one that was asked for longest ago goes first. */
  asked(id: ContainerId): void {
    this.#asked.set(id, true);
  }

  has(id: ContainerId): boolean {
    return this.#asked.has(id);
  }
}
