/**
 * How many requests are being answered: in all, of one client, of one tenant. Streams and waits give up their seat when
 * they have a place of their own (streams/host.ts); whoever only asks whether the gateway lives needs none.
 */

/** Why there is no seat: the house is full, or this client or tenant has too many. */
export type Unseated = 'full' | 'client' | 'tenant';

export interface SeatBounds {
  readonly inAll: number;
  readonly perClient: number;
  readonly perTenant: number;
}

export interface Seat {
  /** Counts it as the tenant's too, where there is room; otherwise it stays as it was. */
  claim(tenant: string): Unseated | undefined;
  /** May be called again. */
  leave(): void;
}

function add(counts: Map<string, number>, key: string, max: number): boolean {
  const count = counts.get(key) ?? 0;
  if (count >= max) return false;
  counts.set(key, count + 1);
  return true;
}

function remove(counts: Map<string, number>, key: string): void {
  const count = counts.get(key) ?? 0;
  if (count > 1) counts.set(key, count - 1);
  else counts.delete(key);
}

export class Seats {
  readonly #bounds: SeatBounds;
  readonly #clients = new Map<string, number>();
  readonly #tenants = new Map<string, number>();
  #taken = 0;

  constructor(bounds: SeatBounds) {
    this.#bounds = bounds;
  }

  taken(): number {
    return this.#taken;
  }

  take(client: string): Seat | Unseated {
    if (this.#taken >= this.#bounds.inAll) return 'full';
    if (!add(this.#clients, client, this.#bounds.perClient)) return 'client';
    this.#taken++;
    let isTaken = true;
    let claimed: string | undefined;
    return {
      claim: (tenant) => {
        if (!add(this.#tenants, tenant, this.#bounds.perTenant)) return 'tenant';
        claimed = tenant;
        return undefined;
      },
      leave: () => {
        if (!isTaken) return;
        isTaken = false;
        this.#taken--;
        remove(this.#clients, client);
        if (claimed !== undefined) remove(this.#tenants, claimed);
      },
    };
  }
}
