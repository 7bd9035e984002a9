/**
 * Containers whose status was requested a short time ago, and tenants whose containers a client
 * follows. Only their changes are announced: a gateway that waits for one asks first, and asks
 * again at intervals. A new owner knows of none until then.
 */
import { LRUCache } from 'lru-cache';
import type { ContainerId, TenantId } from '../../schemas/ids.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { minutes } from '../../schemas/limits/units.ts';

/**
 * Time for which changes of a container are announced after its status was asked for, and the
 * number of such containers.
 */
export const watchedMs = 1 * minutes;
export const watchedContainers = 50_000;

export class StatusWatchers {
  readonly #asked: LRUCache<ContainerId, true>;
  readonly #followed: LRUCache<TenantId, true>;

  constructor({ monotonicMs }: Pick<Clock, 'monotonicMs'>) {
    const perf = { now: () => monotonicMs() };
    const options = { max: watchedContainers, ttl: watchedMs, ttlResolution: 0, perf };
    this.#asked = new LRUCache(options);
    this.#followed = new LRUCache(options);
  }

  /**
   * Called for a request of the status. Bounded: the container whose last request is the oldest
   * goes first.
   */
  asked(id: ContainerId): void {
    this.#asked.set(id, true);
  }

  /** Called when a client follows all containers of the tenant. */
  followed(tenant: TenantId): void {
    this.#followed.set(tenant, true);
  }

  has(tenant: TenantId, id: ContainerId): boolean {
    return this.#asked.has(id) || this.#followed.has(tenant);
  }
}
