/**
 * The VPN's part of a partition's memory: peers of its tenants, and networks with the addresses
 * they allocated. A tenant's peers and their network are mostly in different partitions; the outbox
 * finds here the messages that one has for the other.
 */
import { keys } from '../../schemas/records/buckets.ts';
import { isNetworkName, type NetworkName, type PeerId, type TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { ListCursor } from '../../schemas/api/cursor.ts';
import type { LeaseRecord, NetworkRecord, RevokedRecord } from '../../schemas/api/network.ts';
import type { PeerRecord, PeerTombstoneRecord } from '../../schemas/api/peer.ts';
import { NetworkState, type KnownNetwork } from './network/state.ts';
import { List, newestOf, type ListView } from './order.ts';
import { vpnRecordKey, type NetworkKind } from './records.ts';

/** The VPN peers of one tenant. */
export interface PeersView {
  readonly records: ListView<PeerRecord>;
  readonly tombstones: ReadonlyMap<PeerId, PeerTombstoneRecord>;
  readonly names: ReadonlyMap<string, PeerId>;
  /**
   * The last in the order of the list, of all that were ever created here, as far as memory goes.
   */
  readonly newest: ListCursor | null;
  /** Peers whose record is damaged: they count against the cap, and are reported as such. */
  readonly damaged: ReadonlySet<PeerId>;
}

/** The VPN networks and peers of one partition. */
export interface VpnView {
  /** A network of which nothing is stored has no record. */
  network(name: NetworkName): KnownNetwork;
  networks(): Iterable<KnownNetwork>;
  /** The peer of a token, a link, or the download token of a redeemed link; it may have ended. */
  peerOfToken(hash: string): PeerRecord | undefined;
  /** The cluster's incarnation: in a new one, peers notify their networks again (ADR 13). */
  readonly incarnation: number;
  /** The peers and tombstones whose last change their network has not acknowledged. */
  untold(): Iterable<PeerRecord | PeerTombstoneRecord>;
  /** The same by network. */
  untoldBy(): ReadonlyMap<NetworkName, ReadonlyMap<string, PeerRecord | PeerTombstoneRecord>>;
  /** Tenants of this partition that have peers in the network. */
  tenantsIn(network: NetworkName): Iterable<TenantId>;
  tombstones(): Iterable<PeerTombstoneRecord>;
  /** Tombstones that have been kept long enough. */
  outlived(nowMs: number): PeerTombstoneRecord[];
}

export class TenantPeers implements PeersView {
  readonly records = new List<PeerRecord>();
  readonly tombstones = new Map<PeerId, PeerTombstoneRecord>();
  readonly names = new Map<string, PeerId>();
  newest: ListCursor | null = null;
  readonly damaged = new Set<PeerId>();

  get count(): number {
    return this.records.size + this.damaged.size;
  }
}

/** `true` if its network knows all of it. A peer without a network has nothing to announce. */
export function isAcknowledged(record: PeerRecord | PeerTombstoneRecord, incarnation: number): boolean {
  if (record.network === null) return true;
  const isOfNow = (record.toldIn ?? 0) === incarnation;
  return isOfNow && (record.kind === 'peer' ? record.told >= record.generation : record.told);
}

/** A day, for messages that are under way, and until all of its certificates have expired. */
export const tombstoneEndMs = ({ goneAtMs, revoked }: PeerTombstoneRecord): number =>
  Math.max(goneAtMs + limits.peerTombstoneTtlMs, ...revoked.map(({ notAfterMs }) => notAfterMs));

/** Hashes by which a peer is found. */
const hashesOf = ({ tokens, links = [] }: PeerRecord): string[] => [
  ...tokens.map(({ hash }) => hash),
  ...links.flatMap(({ hash, redeemed }) => (redeemed === undefined ? [hash] : [hash, redeemed.tokenHash])),
];

export class VpnState implements VpnView {
  readonly #networks = new Map<NetworkName, NetworkState>();
  readonly #tokens = new Map<string, PeerRecord>();
  /** By network, the number of peers of each tenant. */
  readonly #tenants = new Map<NetworkName, Map<TenantId, number>>();
  readonly #untold = new Map<NetworkName, Map<string, PeerRecord | PeerTombstoneRecord>>();
  /** The network of each untold record, by its key. */
  readonly #untoldTo = new Map<string, NetworkName>();
  readonly #tombstones = new Map<string, PeerTombstoneRecord>();
  readonly incarnation: number;
  /** No tombstone ends before this. */
  #outlivedFromMs = 0;

  constructor(incarnation: number) {
    this.incarnation = incarnation;
  }

  network(name: NetworkName): KnownNetwork {
    return this.#networks.get(name) ?? new NetworkState(name, this.incarnation);
  }
  networks(): Iterable<KnownNetwork> {
    return this.#networks.values();
  }
  peerOfToken(hash: string): PeerRecord | undefined {
    return this.#tokens.get(hash);
  }
  *untold(): Generator<PeerRecord | PeerTombstoneRecord, void, void> {
    for (const records of this.#untold.values()) yield* records.values();
  }
  untoldBy(): ReadonlyMap<NetworkName, ReadonlyMap<string, PeerRecord | PeerTombstoneRecord>> {
    return this.#untold;
  }
  tenantsIn(network: NetworkName): Iterable<TenantId> {
    return this.#tenants.get(network)?.keys() ?? [];
  }
  tombstones(): Iterable<PeerTombstoneRecord> {
    return this.#tombstones.values();
  }

  outlived(nowMs: number): PeerTombstoneRecord[] {
    if (nowMs < this.#outlivedFromMs) return [];
    const outlived: PeerTombstoneRecord[] = [];
    let earliestMs = Number.MAX_SAFE_INTEGER;
    for (const record of this.#tombstones.values()) {
      if (!isAcknowledged(record, this.incarnation)) continue;
      const endMs = tombstoneEndMs(record);
      if (endMs <= nowMs) outlived.push(record);
      earliestMs = Math.min(earliestMs, endMs);
    }
    this.#outlivedFromMs = earliestMs;
    return outlived;
  }

  putPeer(tenant: TenantPeers, record: PeerRecord): void {
    this.#forget(tenant, record.id);
    this.#unbury(tenant, record);
    tenant.damaged.delete(record.id);
    tenant.records.set(record.id, record);
    tenant.names.set(record.name, record.id);
    tenant.newest = newestOf(tenant.newest, record);
    for (const hash of hashesOf(record)) this.#tokens.set(hash, record);
    this.#count(record, 1);
    this.#note(record);
  }

  putTombstone(tenant: TenantPeers, record: PeerTombstoneRecord): void {
    this.#forget(tenant, record.id);
    tenant.records.delete(record.id);
    tenant.damaged.delete(record.id);
    tenant.tombstones.set(record.id, record);
    this.#tombstones.set(vpnRecordKey(record), record);
    this.#outlivedFromMs = 0;
    this.#note(record);
  }

  deletePeer(tenant: TenantPeers, tenantId: TenantId, id: PeerId): void {
    this.#forget(tenant, id);
    this.#unbury(tenant, { tenant: tenantId, id });
    tenant.records.delete(id);
    tenant.damaged.delete(id);
    this.#tell(keys.peer(tenantId, id));
  }

  put(record: NetworkRecord | LeaseRecord | RevokedRecord): void {
    switch (record.kind) {
      case 'network':
        this.#own(record.name).putRecord(record);
        return;
      case 'lease':
        this.#own(record.network).putLease(record);
        return;
      case 'revoked':
        this.#own(record.network).putRevoked(record);
        return;
    }
  }

  /** Takes the parts of a key. */
  delete(kind: NetworkKind, name: string, rest: string): void {
    if (!isNetworkName(name)) return;
    const network = this.#networks.get(name);
    if (network === undefined) return;
    if (kind === 'network') network.putRecord(undefined);
    if (kind === 'lease') network.deleteLease(Number(rest));
    if (kind === 'revoked') network.deleteRevoked(rest);
    if (network.isEmpty) this.#networks.delete(name);
  }

  quarantine(kind: NetworkKind, name: string, rest: string): void {
    if (!isNetworkName(name)) return;
    if (kind === 'network') this.#own(name).quarantine();
    if (kind === 'lease') this.#own(name).quarantineLease(Number(rest));
    if (kind === 'revoked') this.#own(name).quarantineRevoked(rest);
  }

  #own(name: NetworkName): NetworkState {
    let network = this.#networks.get(name);
    if (network === undefined) this.#networks.set(name, (network = new NetworkState(name, this.incarnation)));
    return network;
  }

  #note(record: PeerRecord | PeerTombstoneRecord): void {
    const key = vpnRecordKey(record);
    const { network } = record;
    if (network === null || isAcknowledged(record, this.incarnation)) {
      this.#tell(key);
      return;
    }
    if (this.#untoldTo.get(key) !== network) this.#tell(key);
    let records = this.#untold.get(network);
    if (records === undefined) this.#untold.set(network, (records = new Map()));
    records.set(key, record);
    this.#untoldTo.set(key, network);
  }

  /** Called when its network knows all of it. */
  #tell(key: string): void {
    const network = this.#untoldTo.get(key);
    if (network === undefined) return;
    const records = this.#untold.get(network);
    records?.delete(key);
    if (records?.size === 0) this.#untold.delete(network);
    this.#untoldTo.delete(key);
  }

  #count({ network, tenant }: PeerRecord, by: 1 | -1): void {
    const tenants = this.#tenants.get(network) ?? new Map<TenantId, number>();
    this.#tenants.set(network, tenants);
    const count = (tenants.get(tenant) ?? 0) + by;
    if (count > 0) tenants.set(tenant, count);
    else tenants.delete(tenant);
    if (tenants.size === 0) this.#tenants.delete(network);
  }

  /** Takes a peer out of every index but the list. */
  #forget(tenant: TenantPeers, id: PeerId): void {
    const before = tenant.records.get(id);
    if (before === undefined) return;
    tenant.names.delete(before.name);
    for (const hash of hashesOf(before)) this.#tokens.delete(hash);
    this.#count(before, -1);
  }

  #unbury(tenant: TenantPeers, { tenant: tenantId, id }: Pick<PeerRecord, 'tenant' | 'id'>): void {
    tenant.tombstones.delete(id);
    this.#tombstones.delete(keys.peer(tenantId, id));
  }
}
