/**
 * Permits for a limited resource: in all, per client and per tenant. A taker that finds no room
 * does not wait. A client is an address, a host or a container.
 */

/**
 * The reason for a refusal: all permits are taken, or this client or tenant has its whole share.
 */
export type NoPermit = 'full' | 'client' | 'tenant';

export interface PermitBounds {
  readonly inAll: number;
  readonly perClient: number;
  /** 0 by default. */
  readonly perTenant?: number;
}

/** A client or tenant with permits, and their number; dropped with its last permit. */
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

export class Permits {
  readonly bounds: PermitBounds;
  readonly clients: Holders = new Map();
  readonly tenants: Holders = new Map();
  taken = 0;

  constructor(bounds: PermitBounds) {
    this.bounds = bounds;
  }

  /** @param client `undefined` if only the bound in all applies */
  take(client: string | undefined, size = 1): Permit | NoPermit {
    if (this.taken + size > this.bounds.inAll) return 'full';
    if (client === undefined) return new Permit(this, undefined, size);
    const holder = this.clients.get(client);
    if ((holder?.count ?? 0) + size > this.bounds.perClient) return 'client';
    return new Permit(this, holder ?? holderOf(this.clients, client), size);
  }

  /** A permit that counts against the tenant, too. */
  takeFor(client: string, tenant: string): Permit | NoPermit {
    const permit = this.take(client);
    if (typeof permit === 'string') return permit;
    const why = permit.claim(tenant);
    if (why === undefined) return permit;
    permit.release();
    return why;
  }
}

export class Permit {
  readonly #permits: Permits;
  readonly #client: Holder | undefined;
  #tenant: Holder | undefined;
  #size = 0;

  constructor(permits: Permits, client: Holder | undefined, size: number) {
    this.#permits = permits;
    this.#client = client;
    this.#add(size);
  }

  #add(size: number): void {
    const { clients, tenants } = this.#permits;
    this.#size += size;
    this.#permits.taken += size;
    if (this.#client !== undefined) add(clients, this.#client, size);
    if (this.#tenant !== undefined) add(tenants, this.#tenant, size);
  }

  /** Counts against the tenant, too; unchanged if the tenant has no room. */
  claim(tenant: string): NoPermit | undefined {
    const { tenants, bounds } = this.#permits;
    const holder = tenants.get(tenant);
    if ((holder?.count ?? 0) + this.#size > (bounds.perTenant ?? 0)) return 'tenant';
    this.#tenant = holder ?? holderOf(tenants, tenant);
    add(tenants, this.#tenant, this.#size);
    return undefined;
  }

  /** Takes all of `more`, or nothing. */
  grow(more: number): NoPermit | undefined {
    const { bounds, taken } = this.#permits;
    if (taken + more > bounds.inAll) return 'full';
    if (this.#client !== undefined && this.#client.count + more > bounds.perClient) return 'client';
    if (this.#tenant !== undefined && this.#tenant.count + more > (bounds.perTenant ?? 0)) return 'tenant';
    this.#add(more);
    return undefined;
  }

  /** May be called again. */
  release(): void {
    if (this.#size > 0) this.#add(-this.#size);
  }
}
