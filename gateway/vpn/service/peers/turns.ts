/**
 * Limits how many peers and keys of one tenant are made at a time. An RSA key costs as much as
 * thousands of reads, and a peer that is being made holds an address that its tenant's cap does not
 * count yet. So a burst of one tenant neither delays other tenants' keys for long nor takes all
 * addresses.
 */
import { createSemaphore, type Semaphore, type Waits } from '../../../../lib/semaphore.ts';
import type { Clock } from '../../../../lib/time/clock.ts';
import type { TenantId } from '../../../../schemas/ids.ts';
import { PoolBusy } from '../../pki/pool.ts';

/**
 * Requests of one tenant that make peers or keys at a time in a gateway, and those that may wait.
 */
export const vpnKeysPerTenant = 8;
export const vpnKeysWaitingPerTenant = 512;

export class TenantTurns {
  readonly #clock: Clock;
  readonly #lines = new Map<TenantId, Semaphore>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * `deadlineMs` is a time of the monotonic clock. @throws PoolBusy, and whatever the work throws
   */
  async run<T>(tenant: TenantId, deadlineMs: number, work: () => Promise<T>): Promise<T> {
    let line = this.#lines.get(tenant);
    if (line === undefined) this.#lines.set(tenant, (line = createSemaphore(vpnKeysPerTenant, waits)));
    try {
      return await line.run(work, deadlineMs - this.#clock.monotonicMs());
    } finally {
      if (line.isIdle) this.#lines.delete(tenant);
    }
  }

  /** Number of tenants that have work under way. */
  get size(): number {
    return this.#lines.size;
  }
}

const waits: Waits = { most: vpnKeysWaitingPerTenant, refuse: (why) => new PoolBusy(why) };
