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

/** Somebody who has seats, and how many; forgotten with the last of them. */
interface Holder {
  readonly name: string;
  count: number;
}

function holderOf(holders: Map<string, Holder>, name: string): Holder {
  const known = holders.get(name);
  if (known !== undefined) return known;
  const holder = { name, count: 0 };
  holders.set(name, holder);
  return holder;
}

export class Seats {
  readonly bounds: SeatBounds;
  readonly clients = new Map<string, Holder>();
  readonly tenants = new Map<string, Holder>();
  taken = 0;

  constructor(bounds: SeatBounds) {
    this.bounds = bounds;
  }

  take(client: string): Seat | Unseated {
    if (this.taken >= this.bounds.inAll) return 'full';
    const holder = holderOf(this.clients, client);
    return holder.count >= this.bounds.perClient ? 'client' : new Seat(this, holder);
  }
}

export class Seat {
  readonly #seats: Seats;
  readonly #client: Holder;
  #tenant: Holder | undefined;
  #isTaken = true;

  constructor(seats: Seats, client: Holder) {
    this.#seats = seats;
    this.#client = client;
    client.count++;
    seats.taken++;
  }

  /** Counts it as the tenant's too, where there is room; otherwise it stays as it was. */
  claim(tenant: string): Unseated | undefined {
    const { tenants, bounds } = this.#seats;
    if (bounds.perTenant === 0) return 'tenant';
    const holder = holderOf(tenants, tenant);
    if (holder.count >= bounds.perTenant) return 'tenant';
    holder.count++;
    this.#tenant = holder;
    return undefined;
  }

  /** May be called again. */
  leave(): void {
    if (!this.#isTaken) return;
    this.#isTaken = false;
    this.#seats.taken--;
    if (--this.#client.count === 0) this.#seats.clients.delete(this.#client.name);
    if (this.#tenant !== undefined && --this.#tenant.count === 0) this.#seats.tenants.delete(this.#tenant.name);
  }
}
