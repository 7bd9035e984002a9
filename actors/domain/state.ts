/**
 * A partition in memory: its tenants with their containers, its hosts, and the indexes that
 * decisions need. Decisions read it through `PartitionView`; commits and loading write it through
 * `PartitionState`.
 */
import type { AnswerRecord } from '../../schemas/records/kept-answer.ts';
import { keys } from '../../schemas/records/buckets.ts';
import type { ContainerRecord, ObservationOrder, PullProgress, TombstoneRecord } from '../../schemas/api/container.ts';
import type { HostRecord, RevokedKeyRecord } from '../../schemas/api/host.ts';
import type { PeerRecord } from '../../schemas/api/peer.ts';
import {
  isContainerId,
  isHostKey,
  isKeyId,
  isPeerId,
  isTenantId,
  type ContainerId,
  type HostKey,
  type NetworkName,
  type PeerId,
  type TenantId,
} from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { RecentChanges } from './recent-changes.ts';
import { byRemoval, removedFromMs, type EndedJob } from './container/endings.ts';
import { movesFrom, otherHostsOf, preparationOf } from './container/moving.ts';
import { isBeingProved } from './container/updates.ts';
import { LeavingContainers, WaitingContainers } from './container/waiting.ts';
import type { Member } from '../../schemas/wire/members.ts';
import type { Ipv4Slice } from '../../schemas/tenant-network.ts';
import { Ipv4Allocations } from './ipv4-allocations.ts';
import { isOtherPeer, memberChange, MemberSums, peerMemberOf, type MemberSummary } from './members.ts';
import { changedAtMs, isOfNetwork, type StateRecord } from './records.ts';
import { Ordered } from './order.ts';
import { TenantState, amountsOf, isStored, recordsOf, undamaged, type TenantView } from './tenant/state.ts';
import type { SigningKeyRecord } from '../../schemas/api/keys/signing-key.ts';
import type { FileRecord } from '../../schemas/api/fields/files-part.ts';
import type { LoginRecord, SecretRecord } from '../../schemas/api/secret.ts';
import type { Alike, Departure, HostLoss, PreparationSeen, SecretOf } from './turn.ts';
import { WaitingByTenant, type Waiting } from './tenant/turns.ts';
import { VpnState, type VpnView } from './vpn-state.ts';

/** Hosts without containers of a partition whose last change it remembers, at least. */
export const hostRevisionsKept = 1000;
/**
 * The latest changes of containers that an owner keeps of each partition; a client that watches and
 * has missed more must begin again.
 */
export const itemChanges = 32_768;

export interface PartitionView {
  /**
   * The epoch of this memory: a number that `revocationChanges` gave counts only under the epoch
   * that gave it.
   */
  readonly epoch: number;
  tenant(tenant: TenantId): TenantView;
  tenants(): Iterable<TenantView>;
  /** Tenants by id, from this one on. */
  tenantsFrom(first: string): Iterable<TenantView>;
  /**
   * Tenants whose revocations changed after this change, or can't be read; in the order of the
   * changes.
   */
  revocationChanges(after: number): Iterable<readonly [change: number, tenant: TenantView]>;
  host(key: HostKey): HostRecord | undefined;
  hosts(): Iterable<HostRecord>;
  /** Keys of hosts that were removed, by the public key. */
  revokedKeys(): ReadonlyMap<string, RevokedKeyRecord>;
  placedOn(host: HostKey): ReadonlyMap<ContainerId, ContainerRecord>;
  /**
   * Containers that are placed on the host, and those that it prepares, or is to stop because they
   * are placed elsewhere (ADR 32).
   */
  wantedOn(host: HostKey): Iterable<ContainerRecord>;
  hostsWithContainers(): Iterable<HostKey>;
  /** The number of containers placed there whose clients know that the host is silent. */
  toldSilent(host: HostKey): number;
  /** The loss of the host that clients who follow its containers know of. */
  shownLoss(host: HostKey): HostLoss | undefined;
  /** The reason why containers leave the host, as noted by the sweep; `undefined` if they stay. */
  departureFrom(host: HostKey): { readonly why: Departure['why']; readonly isWhole: boolean } | undefined;
  /** Containers of such hosts that may leave, and those that another host prepares. */
  leavers(): Waiting<Alike>;
  /**
   * Raised by every change of what is desired on the host; with the epoch it orders the answers to
   * a sync.
   */
  revisionOf(host: HostKey): number;
  /**
   * The containers whose desired state on the host changed after this revision of this memory;
   * `undefined` if that is not known any more.
   */
  changesSince(host: HostKey, revision: number): ReadonlySet<ContainerId> | undefined;
  /**
   * The members that changed or went after this revision; `undefined` if that is not known any
   * more.
   */
  membersSince(tenant: TenantId, revision: number): ReadonlySet<Member['id']> | undefined;
  memberSummaryOf(tenant: TenantId): MemberSummary;
  /** An address that a new container may have; `undefined` if there is none. */
  nextIpv4(slice: Ipv4Slice, expiryMs: number): string | undefined;
  /** The newest change of a container of this memory; it counts only under `epoch`. */
  readonly itemRevision: number;
  /**
   * Containers of the tenant that changed or went after this revision of this memory, with the
   * revision of the last change, in that order; `undefined` if that is not known any more.
   */
  itemsSince(tenant: TenantId, revision: number): ReadonlyMap<ContainerId, number> | undefined;
  /** Containers that should run and have no host. */
  waitingForHost(): Waiting<Alike>;
  /**
   * The order of the newest report of the container: stored with it, or heard since and kept in
   * memory alone.
   */
  lastHeard(record: ContainerRecord): ObservationOrder;
  /** Reports of its host that nothing stores: a load forgets them. */
  inMemory(id: ContainerId): {
    /** The progress of the pull of its image. */
    readonly pull: PullProgress | undefined;
    /**
     * The start of its last observed run, if that is up (`servedMs`): the time at which its host
     * reported it, or at the latest the load.
     */
    readonly upSinceMs: number;
  };
  /** In memory only; `undefined` before the first look at the preparation. */
  preparationSeen(id: ContainerId): PreparationSeen | undefined;
  /** Containers whose update is done once the run of its version has lasted for long enough. */
  beingProved(): Iterable<ContainerRecord>;
  /** Jobs that have ended and are removed after a time, the first to go first. */
  endedJobs(): Iterable<EndedJob>;
  /** Oldest first. */
  tombstones(): Iterable<TombstoneRecord>;
  readonly tombstoneCount: number;
  /** Every damaged container of the partition. */
  damagedContainers(): Iterable<ContainerId>;
  /** Hosts whose record is damaged: what runs there is unknown. */
  damagedHosts(): Iterable<HostKey>;
  readonly vpn: VpnView;
  /**
   * Secrets with a container that is to be brought to the current value, or with a value that no
   * container needs any more.
   */
  secretsToSettle(): Waiting<SecretOf>;
  /**
   * Logins that were put, or loaded, since containers were last tried again because of them, or
   * after a pull that was refused only now.
   */
  loginsToTry(): Waiting<LoginRecord>;
  /** Tenants with contents of files that no container uses. */
  tenantsWithUnusedFiles(): Iterable<TenantView>;
  /** Keys of the cluster, by id; `null` if the record is damaged. */
  signingKeys(): ReadonlyMap<string, SigningKeyRecord | null>;
  /** Answers of all tenants, oldest first. */
  answers(): Iterable<AnswerRecord>;
  /** All stored records except damaged ones. */
  records(): Iterable<StateRecord>;
}

/**
 * Called for a change of a member, with the host of its container, `null` if it has none; or with
 * the network that a peer was in.
 */
type OnMember = (tenant: TenantId, host: HostKey | null, left?: NetworkName) => void;

/** Text in a key: a registry, or an `Idempotency-Key`. */
const partIn = (part: string): string => Buffer.from(part, 'base64url').toString();

/** Resources that placed containers take of their host. */
export interface PlacedAmounts {
  readonly cpuMillis: number;
  readonly memBytes: number;
  readonly ports: number;
}

/** Adds up the resources placed on each host, over all partitions, for placement. */
export interface PlacementLedger {
  /** One container. */
  add(host: HostKey, amounts: PlacedAmounts): void;
  /** `containers`: the number of containers that take these amounts; one by default. */
  subtract(host: HostKey, amounts: PlacedAmounts, containers?: number): void;
  /** Moves under way from this host. */
  leave(host: HostKey, count: number): void;
}

const noContainers: ReadonlyMap<ContainerId, ContainerRecord> = new Map();

export class PartitionState implements PartitionView {
  readonly #tenants = new Map<TenantId, TenantState>();
  readonly #tenantIds = new Ordered<TenantId>((one, other) => (one < other ? -1 : one > other ? 1 : 0));
  readonly #hosts = new Map<HostKey, HostRecord>();
  readonly #revokedKeys = new Map<string, RevokedKeyRecord>();
  readonly #placed = new Map<HostKey, Map<ContainerId, ContainerRecord>>();
  readonly #silent = new Map<HostKey, number>();
  readonly #losses = new Map<HostKey, HostLoss>();
  readonly #waitingForHost = new WaitingContainers();
  readonly #leavers = new LeavingContainers();
  /** Of containers that the sweep gives hosts. */
  readonly #kinds = [this.#waitingForHost, this.#leavers] as const;
  readonly #moving = new Map<ContainerId, ContainerRecord>();
  /** The same by the hosts that prepare them, or are to stop them. */
  readonly #others = new Map<HostKey, Map<ContainerId, ContainerRecord>>();
  readonly #heard = new Map<ContainerId, ObservationOrder>();
  readonly #pulls = new Map<ContainerId, PullProgress>();
  /** By the id of a container that moves. */
  readonly #preparations = new Map<ContainerId, PreparationSeen>();
  /** Oldest first; an older one is up for as long as anybody asks. */
  readonly #upSinceMs = new Map<ContainerId, number>();
  readonly #beingProved = new Map<ContainerId, ContainerRecord>();
  readonly #endedJobs = new Ordered<EndedJob>(byRemoval);
  readonly #tombstones = new Map<ContainerId, TombstoneRecord>();
  readonly #answers = new Map<string, AnswerRecord>();
  readonly #damaged = new Set<ContainerId>();
  readonly #damagedHosts = new Set<HostKey>();
  readonly #secretsToSettle = new WaitingByTenant<SecretOf>();
  readonly #loginsToTry = new WaitingByTenant<LoginRecord>();
  readonly #unusedFiles = new Set<TenantState>();
  readonly #signingKeys = new Map<string, SigningKeyRecord | null>();
  /** This partition's share of the ledger. */
  readonly #accounted = new Map<HostKey, { -readonly [Of in keyof PlacedAmounts]: number } & { containers: number }>();
  readonly #ledger: PlacementLedger;
  readonly #epoch: number;
  /** By tenant, in the order of the changes: revocations that gateways must hear. */
  readonly #revocationChanges = new Map<TenantId, number>();
  #revocationChange = 0;
  #newestMs: number | undefined;
  /** By host, the last change of its desired state. */
  readonly #revisions = new Map<HostKey, number>();
  /**
   * The revision of hosts of which no change is known; not earlier than that of any that was
   * forgotten.
   */
  #otherRevision: number;
  readonly #changes: RecentChanges<HostKey>;
  readonly #items: RecentChanges<TenantId>;
  readonly #members: RecentChanges<TenantId, Member['id']>;
  readonly #memberSums = new Map<TenantId, MemberSums>();
  /** The revision of tenants without members; not earlier than that of any that was dropped. */
  #droppedRevision: number;
  readonly #incarnation: number;
  readonly #ipv4 = new Ipv4Allocations();
  readonly vpn: VpnState;

  /** @param revision of every host at first: the number of the last commit that was loaded */
  constructor(
    ledger: PlacementLedger,
    { epoch, incarnation, revision = 0 }: { epoch: number; incarnation: number; revision?: number } = {
      epoch: 0,
      incarnation: 0,
    },
  ) {
    this.#ledger = ledger;
    this.#epoch = epoch;
    this.#otherRevision = this.#droppedRevision = revision;
    this.#changes = new RecentChanges(revision, limits.syncChanges);
    this.#items = new RecentChanges(0, itemChanges);
    this.#members = new RecentChanges(revision, limits.syncChanges);
    this.#incarnation = incarnation;
    this.vpn = new VpnState(incarnation);
  }

  /** `undefined` if no record has a time. */
  get newestMs(): number | undefined {
    return this.#newestMs;
  }
  get epoch(): number {
    return this.#epoch;
  }
  *revocationChanges(after: number): Generator<readonly [change: number, tenant: TenantView], void, void> {
    for (const [tenant, change] of this.#revocationChanges) if (change > after) yield [change, this.tenant(tenant)];
  }

  /** A tenant without a record exists with its defaults; reading it stores nothing. */
  tenant(tenant: TenantId): TenantView {
    return this.#tenants.get(tenant) ?? new TenantState(tenant);
  }
  tenants(): Iterable<TenantView> {
    return this.#tenants.values();
  }
  *tenantsFrom(first: string): Generator<TenantView, void, void> {
    for (const id of this.#tenantIds.from((tenant) => tenant < first)) yield this.tenant(id);
  }
  host(key: HostKey): HostRecord | undefined {
    return this.#hosts.get(key);
  }
  hosts(): Iterable<HostRecord> {
    return this.#hosts.values();
  }
  revokedKeys(): ReadonlyMap<string, RevokedKeyRecord> {
    return this.#revokedKeys;
  }
  placedOn(host: HostKey): ReadonlyMap<ContainerId, ContainerRecord> {
    return this.#placed.get(host) ?? noContainers;
  }
  *wantedOn(host: HostKey): Generator<ContainerRecord, void, void> {
    yield* this.placedOn(host).values();
    yield* this.#others.get(host)?.values() ?? [];
  }
  *hostsWithContainers(): Iterable<HostKey> {
    yield* this.#placed.keys();
    for (const host of this.#others.keys()) if (!this.#placed.has(host)) yield host;
  }
  toldSilent(host: HostKey): number {
    return this.#silent.get(host) ?? 0;
  }
  shownLoss(host: HostKey): HostLoss | undefined {
    return this.#losses.get(host);
  }
  departureFrom(host: HostKey): ReturnType<PartitionView['departureFrom']> {
    return this.#leavers.departureFrom(host);
  }
  leavers(): Waiting<Alike> {
    return this.#leavers.waiting;
  }
  revisionOf(host: HostKey): number {
    return this.#revisions.get(host) ?? this.#otherRevision;
  }
  changesSince(host: HostKey, revision: number): ReadonlySet<ContainerId> | undefined {
    return this.#changes.since(host, revision);
  }
  membersSince(tenant: TenantId, revision: number): ReadonlySet<Member['id']> | undefined {
    return this.#members.since(tenant, revision);
  }
  nextIpv4(slice: Ipv4Slice, expiryMs: number): string | undefined {
    return this.#ipv4.next(slice, expiryMs);
  }
  memberSummaryOf(tenant: TenantId): MemberSummary {
    return (this.#memberSums.get(tenant) ?? new MemberSums(this.#droppedRevision)).summary(this.#incarnation);
  }
  get itemRevision(): number {
    return this.#items.last;
  }
  itemsSince(tenant: TenantId, revision: number): ReadonlyMap<ContainerId, number> | undefined {
    return this.#items.lastSince(tenant, revision);
  }
  waitingForHost(): Waiting<Alike> {
    return this.#waitingForHost.waiting;
  }
  lastHeard({ id, observedOrder }: ContainerRecord): ObservationOrder {
    return this.#heard.get(id) ?? observedOrder;
  }
  inMemory(id: ContainerId): ReturnType<PartitionView['inMemory']> {
    return { pull: this.#pulls.get(id), upSinceMs: this.#upSinceMs.get(id) ?? 0 };
  }
  preparationSeen(id: ContainerId): PreparationSeen | undefined {
    return this.#preparations.get(id);
  }
  beingProved(): Iterable<ContainerRecord> {
    return this.#beingProved.values();
  }
  endedJobs(): Iterable<EndedJob> {
    return this.#endedJobs.from(() => false);
  }
  answers(): Iterable<AnswerRecord> {
    return this.#answers.values();
  }
  tombstones(): Iterable<TombstoneRecord> {
    return this.#tombstones.values();
  }
  get tombstoneCount(): number {
    return this.#tombstones.size;
  }
  damagedContainers(): Iterable<ContainerId> {
    return this.#damaged;
  }
  damagedHosts(): Iterable<HostKey> {
    return this.#damagedHosts;
  }
  secretsToSettle(): Waiting<SecretOf> {
    return this.#secretsToSettle;
  }
  loginsToTry(): Waiting<LoginRecord> {
    return this.#loginsToTry;
  }
  tenantsWithUnusedFiles(): Iterable<TenantView> {
    return this.#unusedFiles;
  }
  signingKeys(): ReadonlyMap<string, SigningKeyRecord | null> {
    return this.#signingKeys;
  }
  *records(): Generator<StateRecord, void, void> {
    yield* this.#hosts.values();
    yield* this.#revokedKeys.values();
    yield* undamaged(this.#signingKeys.values());
    for (const tenant of this.#tenants.values()) yield* recordsOf(tenant);
    for (const network of this.vpn.networks()) {
      if (network.record !== undefined) yield network.record;
      yield* network.leases(0);
      yield* undamaged(network.refusable().revoked.values());
    }
  }

  /**
   * A report that changed nothing: its order counts until the next change of the container, which
   * stores one as new.
   */
  applyOrder(id: ContainerId, order: ObservationOrder): void {
    this.#heard.set(id, order);
  }

  /** Its containers are shown otherwise from now on, though no record has changed. */
  showLoss(host: HostKey, loss: HostLoss | undefined): void {
    if (loss === undefined) this.#losses.delete(host);
    else this.#losses.set(host, loss);
    for (const { tenant, id } of this.placedOn(host).values()) this.#items.add(tenant, id);
  }

  /** Counts until the next change of the container. */
  handlePullProgress(id: ContainerId, pull: PullProgress): void {
    this.#pulls.set(id, pull);
  }

  seePreparation(id: ContainerId, seen: PreparationSeen): void {
    if (this.#moving.has(id)) this.#preparations.set(id, seen);
  }

  /** A run of it is up from now on. */
  seeUp(id: ContainerId, sinceMs: number): void {
    this.#upSinceMs.delete(id);
    this.#upSinceMs.set(id, sinceMs);
    for (const [other, otherMs] of this.#upSinceMs) {
      if (otherMs + limits.waitStableMaxSeconds * 1000 > sinceMs) return;
      this.#upSinceMs.delete(other);
    }
  }

  /** No container waits for this login; one that was put since is tried by itself. */
  loginTried(login: LoginRecord): void {
    const { tenant, registry } = login;
    if (this.#loginsToTry.get(tenant, registry) === login) this.#loginsToTry.delete(tenant, registry);
  }

  served(item: SecretOf | LoginRecord | Alike): void {
    if ('containers' in item) for (const kinds of this.#kinds) kinds.served(item);
    else if ('registry' in item) this.#loginsToTry.served(item.tenant, item.registry);
    else this.#secretsToSettle.served(item.tenant, item.name);
  }

  /** Until the host has no containers any more, or keeps them. */
  depart(host: HostKey, departure: Departure | undefined): void {
    this.#leavers.depart(host, departure);
  }

  /** Called when the desired state of the container on the host changes. */
  raiseRevision(host: HostKey, id: ContainerId): void {
    this.#revisions.set(host, this.#changes.add(host, id));
    if (this.#revisions.size > hostRevisionsKept + 2 * this.#placed.size) this.#forgetRevisions();
  }

  /**
   * Forgets hosts that have nothing here. Their next syncs find a later revision, and no change.
   */
  #forgetRevisions(): void {
    for (const host of this.#revisions.keys()) if (!this.#placed.has(host)) this.#revisions.delete(host);
    this.#otherRevision = this.#changes.last;
  }

  /** Puts a record in the place of the one under its key. */
  put(record: StateRecord, onMember?: OnMember): void {
    this.#newestMs = Math.max(this.#newestMs ?? 0, changedAtMs(record));
    switch (record.kind) {
      case 'container': {
        const tenant = this.#own(record.tenant);
        const before = tenant.containers.get(record.id);
        this.#noteUses(tenant, before, record);
        this.#noteMember(tenant, before, record, onMember);
        this.#ipv4.allocate(record.id, record.ipv4 ?? undefined);
        this.#forget(tenant, record.id);
        tenant.containers.set(record.id, record);
        tenant.names.set(record.spec.name, record.id);
        tenant.claimKey(record);
        tenant.note(record);
        tenant.count(record, 1);
        this.#place(record);
        this.#items.add(record.tenant, record.id);
        return;
      }
      case 'tombstone': {
        const tenant = this.#own(record.tenant);
        if (!tenant.tombstones.has(record.id)) tenant.noteDeletion(record.goneAtMs);
        this.#remove(tenant, record.id, onMember);
        tenant.tombstones.set(record.id, record);
        this.#tombstones.set(record.id, record);
        this.#ipv4.rest(record.id, record.ipv4, record.goneAtMs);
        tenant.claimKey(record);
        return;
      }
      case 'tenant': {
        const tenant = this.#own(record.tenant);
        const isNews = tenant.settingsDamaged || tenant.record.revocations !== record.revocations;
        tenant.record = record;
        tenant.settingsDamaged = false;
        if (isNews && record.revocations.length > 0) this.#noteRevocations(record.tenant);
        return;
      }
      case 'secret':
        this.#putSecret(record.tenant, record.name, record.version, record);
        return;
      case 'secret_floor':
        this.#own(record.tenant).secrets.floorRecord = record;
        return;
      case 'login':
        this.#own(record.tenant).secrets.logins.set(record.registry, record);
        this.#loginsToTry.put(record.tenant, record.registry, record);
        return;
      case 'file':
        this.#putFile(record.tenant, record.sha256, record);
        return;
      case 'key':
        this.#own(record.tenant).keys.set(record.id, record);
        return;
      case 'answer':
        this.#own(record.tenant).putAnswer(record);
        this.#answers.set(keys.answer(record.tenant, record.key), record);
        return;
      case 'signing_key':
        this.#signingKeys.set(record.id, record);
        return;
      case 'host':
        this.#hosts.set(record.key, record);
        this.#damagedHosts.delete(record.key);
        return;
      case 'revoked_key':
        this.#revokedKeys.set(record.publicKey, record);
        return;
      case 'peer':
        this.#notePeer(record.tenant, record.id, record, onMember);
        this.vpn.putPeer(this.#own(record.tenant).peers, record);
        return;
      case 'peer_tombstone':
        this.#notePeer(record.tenant, record.id, undefined, onMember);
        this.vpn.putTombstone(this.#own(record.tenant).peers, record);
        return;
      case 'network':
      case 'lease':
      case 'revoked':
        this.vpn.put(record);
        return;
    }
  }

  delete(key: string, onMember?: OnMember): void {
    const [kind, first = '', second = '', third = ''] = key.split('.');
    if (kind === 'host' && isHostKey(first)) {
      this.#hosts.delete(first);
      this.#damagedHosts.delete(first);
    }
    if (kind === 'revoked_key') this.#revokedKeys.delete(first);
    if (kind === 'signing_key') this.#signingKeys.delete(first);
    if (kind === 'key' && isTenantId(first) && isKeyId(second)) this.#own(first).keys.delete(second);
    if (kind === 'answer' && isTenantId(first)) this.#own(first).deleteAnswer(partIn(second));
    if (kind === 'answer') this.#answers.delete(key);
    if (kind === 'secret' && isTenantId(first)) this.#deleteSecret(first, second, Number(third));
    if (kind === 'login' && isTenantId(first)) this.#deleteLogin(first, partIn(second));
    if (kind === 'file' && isTenantId(first)) this.#deleteFile(first, second);
    if (kind === 'container' && isTenantId(first) && isContainerId(second))
      this.#remove(this.#own(first), second, onMember);
    if (kind === 'peer' && isTenantId(first) && isPeerId(second)) {
      this.#notePeer(first, second, undefined, onMember);
      this.vpn.deletePeer(this.#own(first).peers, first, second);
    }
    if (isOfNetwork(kind)) this.vpn.delete(kind, first, second);
    else if (isTenantId(first)) this.#drop(first);
  }

  /** The record under a key can't be read: keeps what the key itself says, and fails closed. */
  quarantine(key: string): void {
    const [kind, first = '', second = '', third = ''] = key.split('.');
    if (kind === 'tenant' && isTenantId(first)) {
      this.#own(first).settingsDamaged = true;
      this.#noteRevocations(first);
    }
    if (kind === 'host' && isHostKey(first)) this.#damagedHosts.add(first);
    if (kind === 'signing_key') this.#signingKeys.set(first, null);
    if (kind === 'key' && isTenantId(first) && isKeyId(second)) this.#own(first).keys.set(second, null);
    if (kind === 'secret' && isTenantId(first)) this.#putSecret(first, second, Number(third), null);
    if (kind === 'login' && isTenantId(first)) this.#own(first).secrets.logins.set(partIn(second), null);
    if (kind === 'file' && isTenantId(first)) this.#putFile(first, second, null);
    if (kind === 'container' && isTenantId(first) && isContainerId(second)) {
      this.#own(first).damaged.add(second);
      this.#damaged.add(second);
    }
    if (kind === 'peer' && isTenantId(first) && isPeerId(second)) this.#own(first).peers.damaged.add(second);
    if (isOfNetwork(kind)) this.vpn.quarantine(kind, first, second);
  }

  /** Takes everything off the ledger, for a partition that is no longer ours. */
  release(): void {
    for (const [host, { containers, ...amounts }] of this.#accounted) {
      if (containers > 0) this.#ledger.subtract(host, amounts, containers);
    }
    for (const record of this.#moving.values()) {
      const from = movesFrom(record);
      if (from !== undefined) this.#ledger.leave(from, -1);
    }
    this.#accounted.clear();
    this.#placed.clear();
    this.#silent.clear();
    this.#losses.clear();
    this.#moving.clear();
    this.#others.clear();
  }

  #putSecret(id: TenantId, name: string, version: number, record: SecretRecord | null): void {
    const tenant = this.#own(id);
    tenant.secrets.put(name, version, record);
    this.#noteSecret(tenant, name);
  }

  #deleteSecret(id: TenantId, name: string, version: number): void {
    const tenant = this.#own(id);
    tenant.secrets.delete(name, version);
    this.#noteSecret(tenant, name);
  }

  #noteMember(
    tenant: TenantState,
    before: ContainerRecord | undefined,
    after: ContainerRecord | undefined,
    onMember?: OnMember,
  ): void {
    const id = (after ?? before)?.id;
    const change = memberChange(before, after);
    if (id === undefined || change === undefined) return;
    tenant.memberNames.change(change.before, change.after);
    this.#changeMember(tenant.tenant, id, change.before, change.after);
    onMember?.(tenant.tenant, (change.after ?? change.before)?.host ?? null);
  }

  #notePeer(tenant: TenantId, id: PeerId, after: PeerRecord | undefined, onMember?: OnMember): void {
    const before = this.tenant(tenant).peers.records.get(id);
    if (!isOtherPeer(before, after)) return;
    const [was, is] = [before && peerMemberOf(before), after && peerMemberOf(after)];
    this.#changeMember(tenant, id, was, is);
    onMember?.(tenant, null, was?.network);
  }

  #changeMember(tenant: TenantId, id: Member['id'], before: Member | undefined, after: Member | undefined): void {
    let sums = this.#memberSums.get(tenant);
    if (sums === undefined) this.#memberSums.set(tenant, (sums = new MemberSums(this.#droppedRevision)));
    sums.change(this.#members.add(tenant, id), before, after);
  }

  /** Called when a container is put, changed or removed. */
  #noteUses(tenant: TenantState, before: ContainerRecord | undefined, after: ContainerRecord | undefined): void {
    for (const name of tenant.secrets.note(before, after)) this.#noteSecret(tenant, name);
    tenant.files.note(before, after);
    this.#noteFiles(tenant);
    const login = after === undefined ? undefined : tenant.secrets.loginFor(after);
    if (login !== undefined) this.#loginsToTry.put(tenant.tenant, login.registry, login);
  }

  #noteSecret({ tenant, secrets }: TenantState, name: string): void {
    const isWaiting = this.#secretsToSettle.get(tenant, name) !== undefined;
    if (!secrets.isUnsettled(name)) this.#secretsToSettle.delete(tenant, name);
    else if (!isWaiting) this.#secretsToSettle.put(tenant, name, { tenant, name });
  }

  #putFile(id: TenantId, sha256: string, record: FileRecord | null): void {
    const tenant = this.#own(id);
    tenant.files.put(sha256, record);
    this.#noteFiles(tenant);
  }

  #deleteFile(id: TenantId, sha256: string): void {
    const tenant = this.#own(id);
    tenant.files.delete(sha256);
    this.#noteFiles(tenant);
  }

  #noteFiles(tenant: TenantState): void {
    if (tenant.files.unused.size > 0) this.#unusedFiles.add(tenant);
    else this.#unusedFiles.delete(tenant);
  }

  #deleteLogin(tenant: TenantId, registry: string): void {
    this.#own(tenant).secrets.logins.delete(registry);
    this.#loginsToTry.delete(tenant, registry);
  }

  #noteRevocations(tenant: TenantId): void {
    this.#revocationChanges.delete(tenant);
    this.#revocationChanges.set(tenant, ++this.#revocationChange);
  }

  #own(tenant: TenantId): TenantState {
    let state = this.#tenants.get(tenant);
    if (state !== undefined) return state;
    this.#tenants.set(tenant, (state = new TenantState(tenant)));
    this.#tenantIds.add(tenant);
    return state;
  }

  /** A tenant of which nothing is stored any more is as one that never was. */
  #drop(id: TenantId): void {
    const tenant = this.#tenants.get(id);
    if (tenant === undefined || isStored(tenant) || tenant.secrets.floor > 0) return;
    this.#tenants.delete(id);
    this.#tenantIds.delete(id);
    if (this.#memberSums.delete(id)) this.#droppedRevision = this.#members.last;
  }

  /** Takes a container out of every index but the list. */
  #forget(tenant: TenantState, id: ContainerId): void {
    const before = tenant.containers.get(id);
    if (before === undefined) return;
    tenant.names.delete(before.spec.name);
    tenant.releaseKey(before);
    tenant.count(before, -1);
    for (const kinds of this.#kinds) kinds.forget(before);
    this.#heard.delete(id);
    this.#pulls.delete(id);
    this.#beingProved.delete(id);
    const dueMs = removedFromMs(before);
    if (dueMs !== undefined) this.#endedJobs.delete({ record: before, dueMs });
    if (this.#moving.delete(id)) this.#countMove(before, -1);
    if (before.placement.phase !== 'placed') return;
    const { host } = before.placement;
    const placed = this.#placed.get(host);
    if (placed?.delete(id) !== true) return;
    if (placed.size === 0) {
      this.#placed.delete(host);
      this.#losses.delete(host);
      this.#endDeparture(host);
    }
    if (before.silentOn === host) this.#countSilent(host, -1);
    this.#account(host, before, -1);
  }

  #remove(tenant: TenantState, id: ContainerId, onMember?: OnMember): void {
    if (tenant.containers.has(id)) this.#items.add(tenant.tenant, id);
    this.#noteUses(tenant, tenant.containers.get(id), undefined);
    this.#noteMember(tenant, tenant.containers.get(id), undefined, onMember);
    this.#forget(tenant, id);
    this.#preparations.delete(id);
    this.#upSinceMs.delete(id);
    this.#ipv4.forget(id, tenant.containers.get(id)?.ipv4 ?? undefined);
    tenant.containers.delete(id);
    const tombstone = tenant.tombstones.get(id);
    if (tombstone !== undefined) {
      tenant.tombstones.delete(id);
      this.#tombstones.delete(id);
      this.#ipv4.forget(id, tombstone.ipv4);
      tenant.releaseKey(tombstone);
    }
    tenant.damaged.delete(id);
    this.#damaged.delete(id);
  }

  #place(record: ContainerRecord): void {
    if (movesFrom(record) !== undefined) {
      this.#moving.set(record.id, record);
      this.#countMove(record, 1);
    } else {
      this.#preparations.delete(record.id);
    }
    for (const kinds of this.#kinds) kinds.note(record);
    if (isBeingProved(record)) this.#beingProved.set(record.id, record);
    const dueMs = removedFromMs(record);
    if (dueMs !== undefined) this.#endedJobs.add({ record, dueMs });
    if (record.placement.phase !== 'placed') return;
    const { host } = record.placement;
    let placed = this.#placed.get(host);
    if (placed === undefined) this.#placed.set(host, (placed = new Map()));
    placed.set(record.id, record);
    if (record.silentOn === host) this.#countSilent(host, 1);
    this.#account(host, record, 1);
  }

  #countSilent(host: HostKey, sign: 1 | -1): void {
    const count = this.toldSilent(host) + sign;
    if (count === 0) this.#silent.delete(host);
    else this.#silent.set(host, count);
  }

  /** A host that has nothing here any more is as one that never had. */
  #endDeparture(host: HostKey): void {
    if (!this.#placed.has(host) && !this.#others.has(host)) this.#leavers.depart(host, undefined);
  }

  /** The host that prepares it keeps its room free. */
  #countMove(record: ContainerRecord, sign: 1 | -1): void {
    for (const host of otherHostsOf(record)) {
      const others = this.#others.get(host) ?? new Map<ContainerId, ContainerRecord>();
      if (sign === 1) this.#others.set(host, others.set(record.id, record));
      else if (others.delete(record.id) && others.size === 0) {
        this.#others.delete(host);
        this.#endDeparture(host);
      }
    }
    const from = movesFrom(record);
    if (from !== undefined) this.#ledger.leave(from, sign);
    const preparing = preparationOf(record);
    if (preparing !== undefined) this.#account(preparing.host, record, sign);
  }

  #account(host: HostKey, record: ContainerRecord, sign: 1 | -1): void {
    const amounts = amountsOf(record);
    const sum = this.#accounted.get(host) ?? { cpuMillis: 0, memBytes: 0, ports: 0, containers: 0 };
    sum.cpuMillis += sign * amounts.cpuMillis;
    sum.memBytes += sign * amounts.memBytes;
    sum.ports += sign * amounts.ports;
    sum.containers += sign;
    if (sum.containers === 0) this.#accounted.delete(host);
    else this.#accounted.set(host, sum);
    if (sign === 1) this.#ledger.add(host, amounts);
    else this.#ledger.subtract(host, amounts);
  }
}
