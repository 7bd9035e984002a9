/**
 * A VPN network as its partition holds it: its record, the addresses that are allocated, the
 * certificates that are refused.
 */
import type { NetworkName, PeerId, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { LeaseRecord, NetworkRecord, RevokedRecord } from '../../../schemas/api/network.ts';

/** Two that are never allocated: the network itself and its server (schemas/cidr.ts). */
const firstIndex = 2;

export interface KnownNetwork {
  readonly name: NetworkName;
  /** `undefined` if there is none of this name, or if it is damaged. */
  readonly record: NetworkRecord | undefined;
  readonly isDamaged: boolean;
  /** Addresses that are reserved or allocated, those of damaged leases too. */
  readonly allocated: number;
  lease(index: number): LeaseRecord | undefined;
  leaseOf(tenant: TenantId, peer: PeerId): LeaseRecord | undefined;
  /** Leases by index, from this one on. */
  leases(from: number): Iterable<LeaseRecord>;
  /** Reservations of this incarnation, oldest first. */
  reservations(): Iterable<LeaseRecord>;
  /** Held or reserved since before the last restore, and not confirmed by its peer since. */
  unconfirmed(): Iterable<LeaseRecord>;
  /**
   * The next after the one that was allocated last, so that an address rests before it is allocated
   * again.
   */
  freeIndex(last: number): number | undefined;
  isRevoked(serial: string): boolean;
  /** `true` if peers of this tenant may connect, as far as the record says. */
  serves(tenant: TenantId): boolean;
  refusable(): Refusable;
  /** Serials that have been kept long enough. */
  outlived(nowMs: number): string[];
}

/** Certificates that a revocation list may have to name. */
export interface Refusable {
  /** Sorted. */
  readonly serials: readonly string[];
  /** `null` if its record is damaged: the certificate is refused all the same. */
  readonly revoked: ReadonlyMap<string, RevokedRecord | null>;
  /**
   * Leases whose peer is disabled, will expire, or is of a tenant that is not served; by serial.
   */
  readonly pausable: ReadonlyMap<string, LeaseRecord>;
}

export const isConfirmed = ({ confirmedIn }: LeaseRecord, incarnation: number): boolean =>
  (confirmedIn ?? 0) === incarnation;

const idOf = (tenant: TenantId, peer: PeerId): string => `${tenant} ${peer}`;

export class NetworkState implements KnownNetwork {
  readonly name: NetworkName;
  #record: NetworkRecord | undefined;
  #isDamaged = false;
  /** `undefined` for every tenant. */
  #served: ReadonlySet<TenantId> | undefined;
  /**
   * A byte for each index, empty before the first: searched natively, the largest pool takes
   * microseconds.
   */
  #taken = new Uint8Array();
  #lastAllocated = firstIndex - 1;
  #allocated = 0;
  readonly #leases = new Map<number, LeaseRecord>();
  readonly #byPeer = new Map<string, LeaseRecord>();
  readonly #reservations = new Map<number, LeaseRecord>();
  readonly #unconfirmed = new Map<number, LeaseRecord>();
  readonly #incarnation: number;
  readonly #pausable = new Set<number>();
  readonly #revoked = new Map<string, RevokedRecord | null>();
  /** Made when it is asked for, forgotten when something of it changes. */
  #refusable: Refusable | undefined;
  /** No record of a revocation has outlived its use before this. */
  #outlivedFromMs = 0;

  constructor(name: NetworkName, incarnation: number) {
    this.name = name;
    this.#incarnation = incarnation;
  }

  get record(): NetworkRecord | undefined {
    return this.#record;
  }
  get isDamaged(): boolean {
    return this.#isDamaged;
  }
  get allocated(): number {
    return this.#allocated;
  }
  get isEmpty(): boolean {
    return this.#record === undefined && !this.#isDamaged && this.#allocated === 0 && this.#revoked.size === 0;
  }

  lease(index: number): LeaseRecord | undefined {
    return this.#leases.get(index);
  }

  leaseOf(tenant: TenantId, peer: PeerId): LeaseRecord | undefined {
    return this.#byPeer.get(idOf(tenant, peer));
  }

  *leases(from: number): Generator<LeaseRecord, void, void> {
    let index = this.#taken.indexOf(1, Math.max(from, firstIndex));
    for (; index !== -1; index = this.#taken.indexOf(1, index + 1)) {
      const lease = this.#leases.get(index);
      if (lease !== undefined) yield lease;
    }
  }

  reservations(): Iterable<LeaseRecord> {
    return this.#reservations.values();
  }

  unconfirmed(): Iterable<LeaseRecord> {
    return this.#unconfirmed.values();
  }

  freeIndex(last: number): number | undefined {
    const after = this.#taken.indexOf(0, this.#lastAllocated + 1);
    if (after !== -1 && after <= last) return after;
    const first = this.#taken.indexOf(0);
    return first !== -1 && first <= last ? first : undefined;
  }

  isRevoked(serial: string): boolean {
    return this.#revoked.has(serial);
  }

  serves(tenant: TenantId): boolean {
    return this.#served?.has(tenant) ?? true;
  }

  refusable(): Refusable {
    if (this.#refusable !== undefined) return this.#refusable;
    const pausable = new Map<string, LeaseRecord>();
    for (const index of this.#pausable) {
      const lease = this.#leases.get(index);
      if (lease?.state.phase !== 'held') continue;
      for (const { serial } of lease.state.certificates) pausable.set(serial, lease);
    }
    const serials = [...new Set([...this.#revoked.keys(), ...pausable.keys()])].sort();
    return (this.#refusable = { serials, revoked: this.#revoked, pausable });
  }

  /**
   * Longer than its certificate, and a day at least: until then no message from before the
   * revocation is still on its way (network/learn.ts rests on it). Those of a network that was
   * removed have nothing else to stay for.
   */
  outlived(nowMs: number): string[] {
    if (nowMs < this.#outlivedFromMs) return [];
    const outlived: string[] = [];
    const isOrphan = this.#record === undefined && !this.#isDamaged;
    let earliestMs = Number.MAX_SAFE_INTEGER;
    for (const [serial, record] of this.#revoked) {
      if (record === null) continue;
      const { atMs, notAfterMs } = record;
      const untilMs = (isOrphan ? atMs : Math.max(atMs, notAfterMs)) + limits.peerTombstoneTtlMs;
      if (untilMs <= nowMs) outlived.push(serial);
      earliestMs = Math.min(earliestMs, untilMs);
    }
    this.#outlivedFromMs = earliestMs;
    return outlived;
  }

  // Written by VpnState alone

  putRecord(record: NetworkRecord | undefined): void {
    this.#record = record;
    this.#isDamaged = false;
    const tenants = record?.settings.tenants ?? null;
    this.#served = tenants === null ? undefined : new Set(tenants);
    this.#pauseAll();
    this.#prepare();
    this.#outlivedFromMs = 0;
  }

  quarantine(): void {
    this.#record = undefined;
    this.#isDamaged = true;
  }

  putLease(lease: LeaseRecord): void {
    const { index } = lease;
    const before = this.#leases.get(index);
    if (before !== undefined) this.#forget(before);
    this.#take(index);
    this.#leases.set(index, lease);
    this.#byPeer.set(idOf(lease.tenant, lease.peer), lease);
    // A message that holds the address up is answered that its holder is being asked. So a
    // reservation from before a restore is not given its time: its clock may have been days ahead.
    if (!isConfirmed(lease, this.#incarnation)) this.#unconfirmed.set(index, lease);
    else if (lease.state.phase === 'reserved') this.#reservations.set(index, lease);
    if (this.#isPausable(lease)) {
      this.#pausable.add(index);
      this.#refusable = undefined;
    }
  }

  deleteLease(index: number): void {
    const before = this.#leases.get(index);
    if (before !== undefined) this.#forget(before);
    if (this.#taken[index] !== 1 || index < firstIndex) return;
    this.#taken[index] = 0;
    this.#allocated--;
  }

  /** Its key says which address it is: that stays taken. */
  quarantineLease(index: number): void {
    this.#take(index);
  }

  putRevoked(record: RevokedRecord): void {
    this.#revoked.set(record.serial, record);
    this.#refusable = undefined;
    this.#outlivedFromMs = 0;
  }

  /** Its key says which certificate it is: that stays refused. */
  quarantineRevoked(serial: string): void {
    this.#revoked.set(serial, null);
    this.#refusable = undefined;
  }

  deleteRevoked(serial: string): void {
    this.#revoked.delete(serial);
    this.#refusable = undefined;
  }

  #prepare(): void {
    if (this.#taken.length > 0) return;
    this.#taken = new Uint8Array(2 ** (32 - limits.ipv4PoolPrefixMin)).fill(1, 0, firstIndex);
  }

  #isPausable({ state, tenant }: LeaseRecord): boolean {
    return state.phase === 'held' && (!state.enabled || state.expiresAtMs !== null || !this.serves(tenant));
  }

  /** Other tenants may be served than before. */
  #pauseAll(): void {
    this.#pausable.clear();
    for (const lease of this.#leases.values()) if (this.#isPausable(lease)) this.#pausable.add(lease.index);
    this.#refusable = undefined;
  }

  #take(index: number): void {
    this.#prepare();
    if (this.#taken[index] !== 0) return;
    this.#taken[index] = 1;
    this.#allocated++;
    this.#lastAllocated = index;
  }

  /** Out of every index but the one by number. */
  #forget(lease: LeaseRecord): void {
    const id = idOf(lease.tenant, lease.peer);
    this.#leases.delete(lease.index);
    if (this.#byPeer.get(id) === lease) this.#byPeer.delete(id);
    this.#reservations.delete(lease.index);
    this.#unconfirmed.delete(lease.index);
    if (this.#pausable.delete(lease.index)) this.#refusable = undefined;
  }
}
