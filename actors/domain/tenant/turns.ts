/**
 * Items that wait for a sweep that changes a bounded number of containers: the tenants take turns,
 * and so do the secrets, logins or kinds of containers of a tenant. After a turn a tenant or an
 * item goes behind the others, also for the next sweep, as in a lane (lib/rpc/lane.ts). So no
 * tenant waits longer because another has many.
 */
import type { LoginRecord } from '../../../schemas/api/secret.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import type { Alike, Changes, SecretOf } from '../turn.ts';

export interface Waiting<T> {
  /**
   * Tenants in the order of their turns. Continues while turns are taken, and so comes to a tenant
   * again.
   */
  tenants(): Iterable<TenantId>;
  of(tenant: TenantId): Iterable<T>;
}

export class WaitingByTenant<T> implements Waiting<T> {
  readonly #items = new Map<TenantId, Map<string, T>>();

  tenants(): Iterable<TenantId> {
    return this.#items.keys();
  }

  of(tenant: TenantId): Iterable<T> {
    return this.#items.get(tenant)?.values() ?? [];
  }

  get(tenant: TenantId, name: string): T | undefined {
    return this.#items.get(tenant)?.get(name);
  }

  /** Replaces the item under its name. */
  put(tenant: TenantId, name: string, item: T): void {
    let items = this.#items.get(tenant);
    if (items === undefined) this.#items.set(tenant, (items = new Map()));
    items.set(name, item);
  }

  delete(tenant: TenantId, name: string): void {
    const items = this.#items.get(tenant);
    items?.delete(name);
    if (items?.size === 0) this.#items.delete(tenant);
  }

  served(tenant: TenantId, name: string): void {
    const items = this.#items.get(tenant);
    if (items === undefined) return;
    const item = items.get(name);
    items.delete(name);
    // It may be done by its turn.
    if (item !== undefined) items.set(name, item);
    this.#items.delete(tenant);
    this.#items.set(tenant, items);
  }
}

/**
 * @param changesOf of one item; without records and deletes they are a step, and not a turn
 * @param most turns
 */
export function* inTurns<T extends SecretOf | LoginRecord | Alike>(
  waiting: Waiting<T>,
  changesOf: (item: T) => Iterator<Changes, void, void>,
  most: number,
): Generator<Changes, void, void> {
  const works = new Map<T, Iterator<Changes, void, void>>();
  /** @returns `true` if it had its turn; otherwise it has nothing more to do */
  function* turnOf(item: T): Generator<Changes, boolean, void> {
    let work = works.get(item);
    if (work === undefined) works.set(item, (work = changesOf(item)));
    for (let next = work.next(); next.done !== true; next = work.next()) {
      const isTurn = next.value.records.length + next.value.deletes.length > 0;
      yield isTurn ? { ...next.value, heard: { served: item } } : next.value;
      if (isTurn) return true;
    }
    return false;
  }
  // After its turn a tenant is behind the others: it continues where it was, and an item without
  // work is visited once.
  const places = new Map<TenantId, Iterator<T, void, void>>();
  let left = most;
  for (const tenant of waiting.tenants()) {
    const items = places.get(tenant) ?? waiting.of(tenant)[Symbol.iterator]();
    places.set(tenant, items);
    for (let next = items.next(); next.done !== true; next = items.next()) {
      if (!(yield* turnOf(next.value))) continue;
      if (--left === 0) return;
      break;
    }
  }
}
