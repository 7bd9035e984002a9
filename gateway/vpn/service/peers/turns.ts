/**
 * Limits how many peers and keys of one tenant are made at a time. An RSA key costs as much as
 * thousands of reads, and a peer that is being made holds an address that its tenant's cap does not
 * count yet. So a burst of one tenant neither delays other tenants' keys for long nor takes all
 * addresses.
 */
import type { Clock } from '../../../../lib/time/clock.ts';
import type { TenantId } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import { PoolBusy } from '../../pki/pool.ts';

interface Line {
  underWay: number;
  /** First come, first served. */
  readonly waiting: (() => void)[];
}

export class TenantTurns {
  readonly #clock: Clock;
  readonly #lines = new Map<TenantId, Line>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * `deadlineMs` is a time of the monotonic clock. @throws PoolBusy, and whatever the work throws
   */
  async run<T>(tenant: TenantId, deadlineMs: number, work: () => Promise<T>): Promise<T> {
    await this.#enter(tenant, deadlineMs);
    try {
      return await work();
    } finally {
      this.#leave(tenant);
    }
  }

  /** How many tenants have work under way. */
  get size(): number {
    return this.#lines.size;
  }

  async #enter(tenant: TenantId, deadlineMs: number): Promise<void> {
    let line = this.#lines.get(tenant);
    if (line === undefined) this.#lines.set(tenant, (line = { underWay: 0, waiting: [] }));
    if (line.underWay < limits.vpnKeysPerTenant) {
      line.underWay++;
      return;
    }
    const { waiting } = line;
    if (waiting.length >= limits.vpnKeysWaitingPerTenant) throw new PoolBusy('full');
    await new Promise<void>((resolve, reject) => {
      const enter = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(
        () => {
          waiting.splice(waiting.indexOf(enter), 1);
          reject(new PoolBusy('late'));
        },
        Math.max(0, deadlineMs - this.#clock.monotonicMs()),
      );
      waiting.push(enter);
    });
  }

  #leave(tenant: TenantId): void {
    const line = this.#lines.get(tenant);
    if (line === undefined) return;
    const next = line.waiting.shift();
    // The next in line takes the place, so the count stays the same.
    if (next !== undefined) return next();
    line.underWay--;
    if (line.underWay === 0) this.#lines.delete(tenant);
  }
}
