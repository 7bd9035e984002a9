/**
 * The IPv4 addresses that containers of a partition have, and those that rest after they were
 * given back, so that nobody who still knows one reaches another tenant's container. Pure.
 */
import { formatAddress, parseAddress } from '../../schemas/cidr.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { Ipv4Slice } from '../../schemas/tenant-network.ts';

interface Allocation {
  readonly id: ContainerId;
  /** Infinite while the container is there. */
  readonly untilMs: number;
}

export class Ipv4Allocations {
  readonly #byAddress = new Map<number, Allocation>();
  #last = 0;

  allocate(id: ContainerId, address: string | undefined): void {
    const number = numberOf(address);
    if (number === undefined) return;
    this.#byAddress.set(number, { id, untilMs: Infinity });
    this.#last = number;
  }

  /** Called when the container is gone. */
  rest(id: ContainerId, address: string | undefined, goneAtMs: number): void {
    const number = numberOf(address);
    if (number !== undefined) this.#byAddress.set(number, { id, untilMs: goneAtMs + limits.ipv4RestMs });
  }

  /** Called when nothing is remembered of the container. */
  forget(id: ContainerId, address: string | undefined): void {
    const number = numberOf(address);
    if (number !== undefined && this.#byAddress.get(number)?.id === id) this.#byAddress.delete(number);
  }

  /**
   * An address that is free, the one after the last if possible; `undefined` if there is none.
   * @param expiryMs the time that has certainly come (ADR 13)
   */
  next({ first, count }: Ipv4Slice, expiryMs: number): string | undefined {
    const start = this.#last >= first && this.#last < first + count ? this.#last + 1 - first : 0;
    for (let step = 0; step < count; step++) {
      const number = first + ((start + step) % count);
      if ((this.#byAddress.get(number)?.untilMs ?? -Infinity) <= expiryMs) return formatAddress(4, BigInt(number));
    }
    return undefined;
  }
}

function numberOf(address: string | undefined): number | undefined {
  const parsed = address === undefined ? undefined : parseAddress(address);
  return parsed?.family === 4 ? Number(parsed.value) : undefined;
}
