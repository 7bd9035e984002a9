/**
 * Shares of a limited resource: in all, per client and per tenant. Who finds no room does not wait.
 * A client is who takes it: an address, a host, a container.
 */

/** Why there is no room: all seats are taken, or this client or tenant has its whole share. */
export type Unseated = 'full' | 'client' | 'tenant';

export interface SeatBounds {
  readonly inAll: number;
  readonly perClient: number;
  /** Default: 0. */
  readonly perTenant?: number;
}

/** A client or tenant with seats, and their number; dropped with its last seat. */
interface Holder {
  readonly name: string;
  count: number;
}

type Holders = Map<string, Holder>;

function holderOf(holders: Holders, name: string): Holder {
  const holder = { name, count: 0 };
  holders.set(name, holder);
  return holder;
}

function add(holders: Holders, holder: Holder, size: number): void {
  holder.count += size;
  if (holder.count === 0) holders.delete(holder.name);
}

export class Seats {
  readonly bounds: SeatBounds;
  readonly clients: Holders = new Map();
  readonly tenants: Holders = new Map();
  taken = 0;

  constructor(bounds: SeatBounds) {
    this.bounds = bounds;
  }

  /** `undefined`: of no client, within what there is in all. */
  take(client: string | undefined, size = 1): Seat | Unseated {
    if (this.taken + size > this.bounds.inAll) return 'full';
    if (client === undefined) return new Seat(this, undefined, size);
    const holder = this.clients.get(client);
    if ((holder?.count ?? 0) + size > this.bounds.perClient) return 'client';
    return new Seat(this, holder ?? holderOf(this.clients, client), size);
  }

  /** A seat that counts against the tenant, too. */
  takeFor(client: string, tenant: string): Seat | Unseated {
    const seat = this.take(client);
    if (typeof seat === 'string') return seat;
    const why = seat.claim(tenant);
    if (why === undefined) return seat;
    seat.leave();
    return why;
  }
}

export class Seat {
  readonly #seats: Seats;
  readonly #client: Holder | undefined;
  #tenant: Holder | undefined;
  #size = 0;

  constructor(seats: Seats, client: Holder | undefined, size: number) {
    this.#seats = seats;
    this.#client = client;
    this.#add(size);
  }

  #add(size: number): void {
    const { clients, tenants } = this.#seats;
    this.#size += size;
    this.#seats.taken += size;
    if (this.#client !== undefined) add(clients, this.#client, size);
    if (this.#tenant !== undefined) add(tenants, this.#tenant, size);
  }

  /** Counts against the tenant, too; unchanged if the tenant has no room. */
  claim(tenant: string): Unseated | undefined {
    const { tenants, bounds } = this.#seats;
    const holder = tenants.get(tenant);
    if ((holder?.count ?? 0) + this.#size > (bounds.perTenant ?? 0)) return 'tenant';
    this.#tenant = holder ?? holderOf(tenants, tenant);
    add(tenants, this.#tenant, this.#size);
    return undefined;
  }

  /** Takes all of `more`, or nothing. */
  grow(more: number): Unseated | undefined {
    const { bounds, taken } = this.#seats;
    if (taken + more > bounds.inAll) return 'full';
    if (this.#client !== undefined && this.#client.count + more > bounds.perClient) return 'client';
    if (this.#tenant !== undefined && this.#tenant.count + more > (bounds.perTenant ?? 0)) return 'tenant';
    this.#add(more);
    return undefined;
  }

  /** May be called again. */
  leave(): void {
    if (this.#size > 0) this.#add(-this.#size);
  }
}
