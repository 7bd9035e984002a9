/** A tenant in memory: its containers with their indexes, what they take, and its peers. */
import type { ContainerRecord, TombstoneRecord, Version } from '../../../schemas/api/container.ts';
import type { ListCursor } from '../../../schemas/api/cursor.ts';
import type { KeyRecord } from '../../../schemas/api/keys/key.ts';
import { answerBytes, type AnswerRecord } from '../../../schemas/records/kept-answer.ts';
import { defaultTenant, type QuotaAmounts, type TenantRecord } from '../../../schemas/api/tenant.ts';
import { quotaDimensions, type QuotaDimension } from '../../../schemas/errors.ts';
import type { ContainerId, KeyId, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { cpuMillis, memBytes } from '../../../schemas/quantity.ts';
import { TenantFiles, type FilesView } from '../file/state.ts';
import { isMember } from '../members.ts';
import { List, newestOf, type ListView } from '../order.ts';
import type { StateRecord } from '../records.ts';
import { TenantSecrets, type SecretsView } from '../secret/state.ts';
import { TenantPeers, type PeersView } from '../vpn-state.ts';
import { MemberNames, type MemberNamesView } from './names.ts';

export interface TenantView {
  readonly tenant: TenantId;
  readonly record: TenantRecord;
  readonly containers: ListView<ContainerRecord>;
  readonly tombstones: ReadonlyMap<ContainerId, TombstoneRecord>;
  /**
   * The times at which its containers were deleted, oldest first: all of the last hour, and some
   * before.
   */
  readonly deletions: readonly number[];
  readonly names: ReadonlyMap<string, ContainerId>;
  readonly idempotency: ReadonlyMap<string, ContainerId>;
  /**
   * The last in the order of the list, of all that were ever created here, as far as memory goes.
   */
  readonly newest: ListCursor | null;
  /**
   * Containers whose record is damaged: they count as containers; what else they take is unknown
   * (quota.ts).
   */
  readonly damaged: ReadonlySet<ContainerId>;
  /**
   * The tenant's own record is damaged: `record` has only defaults, and an operator must repair it
   * (docs/runbook.md).
   */
  readonly settingsDamaged: boolean;
  readonly peers: PeersView;
  readonly secrets: SecretsView;
  readonly files: FilesView;
  /** Keys of its programs; `null` if the record is damaged. */
  readonly keys: ReadonlyMap<KeyId, KeyRecord | null>;
  /**
   * Answers to requests with an `Idempotency-Key`, by the key, oldest first; and the bytes of all.
   */
  readonly answers: ReadonlyMap<string, AnswerRecord>;
  readonly answersBytes: number;
  /** Usage in a region; `*` is all. */
  usage(region: string): QuotaAmounts;
  /** The number of containers in its network (members.ts), and their names there. */
  readonly members: number;
  readonly memberNames: MemberNamesView;
}

/** `true` if something of it is stored: settings, containers, secrets, peers, or their remains. */
export function isStored({
  record,
  settingsDamaged,
  containers,
  damaged,
  tombstones,
  peers,
  secrets,
  files,
  keys,
  answers,
}: TenantView): boolean {
  if (record.updatedAtMs > 0 || settingsDamaged) return true;
  const ofContainers = [containers, damaged, tombstones];
  const ofPeers = [peers.records, peers.damaged, peers.tombstones];
  return [...ofContainers, ...ofPeers, secrets.values, secrets.logins, files.records, keys, answers].some(
    ({ size }) => size > 0,
  );
}

export function* undamaged<R>(records: Iterable<R | null>): Generator<R, void, void> {
  for (const record of records) if (record !== null) yield record;
}

/** All stored records of a tenant except damaged ones. */
export function* recordsOf(tenant: TenantView): Generator<StateRecord, void, void> {
  const { record, containers, tombstones, peers, secrets, files, keys, answers } = tenant;
  if (record.updatedAtMs > 0) yield record;
  yield* containers.values();
  yield* tombstones.values();
  yield* peers.records.values();
  yield* peers.tombstones.values();
  for (const values of secrets.values.values()) yield* undamaged(values.values());
  if (secrets.floorRecord !== undefined) yield secrets.floorRecord;
  yield* undamaged(secrets.logins.values());
  yield* undamaged(files.records.values());
  yield* undamaged(keys.values());
  yield* answers.values();
}

interface Amounts {
  readonly cpuMillis: number;
  readonly memBytes: number;
}

/** The limits of one version of a container, as its creation or update validated them. */
export const limitsOf = ({ spec }: Pick<Version, 'spec'>): Amounts => ({
  cpuMillis: cpuMillis(spec.cpu_limit) ?? 0,
  memBytes: memBytes(spec.mem_limit) ?? 0,
});

/**
 * The resources that a container takes. While it is being updated either version may run: the
 * larger of both.
 */
export function amountsOf(record: ContainerRecord): Amounts & { readonly ports: number } {
  const next = { ...limitsOf(record), ports: record.spec.ports.length };
  const { previous } = record.update ?? {};
  if (previous === undefined) return next;
  const before = limitsOf(previous);
  return {
    cpuMillis: Math.max(next.cpuMillis, before.cpuMillis),
    memBytes: Math.max(next.memBytes, before.memBytes),
    ports: Math.max(next.ports, previous.spec.ports.length),
  };
}

/** The same in the dimensions of a quota. */
export function quotaAmountsOf(record: ContainerRecord): Omit<QuotaAmounts, 'vpn_peers'> {
  const { cpuMillis, memBytes, ports } = amountsOf(record);
  const { diskBytes = limits.containerDiskBytes } = record;
  return { containers: 1, cpu_millis: cpuMillis, mem_bytes: memBytes, ports, disk_bytes: diskBytes };
}

type MutableAmounts = Record<QuotaDimension, number>;

const noAmounts: QuotaAmounts = Object.freeze(
  Object.fromEntries(quotaDimensions.map((dimension) => [dimension, 0])) as MutableAmounts,
);

export class TenantState implements TenantView {
  readonly tenant: TenantId;
  record: TenantRecord;
  settingsDamaged = false;
  readonly containers = new List<ContainerRecord>();
  readonly tombstones = new Map<ContainerId, TombstoneRecord>();
  readonly deletions: number[] = [];
  readonly names = new Map<string, ContainerId>();
  readonly idempotency = new Map<string, ContainerId>();
  newest: ListCursor | null = null;
  readonly damaged = new Set<ContainerId>();
  readonly peers = new TenantPeers();
  readonly secrets = new TenantSecrets();
  readonly files = new TenantFiles();
  readonly keys = new Map<KeyId, KeyRecord | null>();
  readonly answers = new Map<string, AnswerRecord>();
  answersBytes = 0;
  members = 0;
  readonly memberNames = new MemberNames();
  readonly #usage = new Map<string, MutableAmounts>();

  constructor(tenant: TenantId) {
    this.tenant = tenant;
    this.record = defaultTenant(tenant);
  }

  usage(region: string): QuotaAmounts {
    const amounts = this.#usage.get(region) ?? noAmounts;
    // Peers are in no region.
    const damaged = this.damaged.size;
    if (region !== '*' || damaged + this.peers.count === 0) return amounts;
    return {
      ...amounts,
      containers: amounts.containers + damaged,
      vpn_peers: this.peers.count,
      // The most that they can have.
      ports: amounts.ports + damaged * limits.ports,
      disk_bytes: amounts.disk_bytes + damaged * limits.containerDiskBytes,
    };
  }

  /**
   * A key that was used again after its time belongs to the newer container; the older one's
   * changes leave it there.
   */
  claimKey({ id, idempotency }: ContainerRecord | TombstoneRecord): void {
    if (idempotency === null) return;
    const holder = this.idempotency.get(idempotency.key);
    const held = holder === undefined ? undefined : (this.containers.get(holder) ?? this.tombstones.get(holder));
    if (held === undefined || held.id === id || (held.idempotency?.untilMs ?? 0) < idempotency.untilMs) {
      this.idempotency.set(idempotency.key, id);
    }
  }

  releaseKey({ id, idempotency }: ContainerRecord | TombstoneRecord): void {
    if (idempotency !== null && this.idempotency.get(idempotency.key) === id) this.idempotency.delete(idempotency.key);
  }

  putAnswer(record: AnswerRecord): void {
    const before = this.answers.get(record.key);
    this.answersBytes += answerBytes(record) - (before === undefined ? 0 : answerBytes(before));
    this.answers.set(record.key, record);
  }

  deleteAnswer(key: string): void {
    const record = this.answers.get(key);
    if (record !== undefined) this.answersBytes -= answerBytes(record);
    this.answers.delete(key);
  }

  /** Drops them by halves, so that each costs little. */
  noteDeletion(atMs: number): void {
    this.deletions.push(atMs);
    const half = this.deletions.length >> 1;
    if ((this.deletions[half] ?? atMs) + limits.anHourMs <= atMs) this.deletions.splice(0, half);
  }

  note(record: ContainerRecord): void {
    this.newest = newestOf(this.newest, record);
  }

  count(record: ContainerRecord, sign: 1 | -1): void {
    if (isMember(record)) this.members += sign;
    const more = quotaAmountsOf(record);
    const regions = record.placement.phase === 'placed' ? ['*', record.placement.region] : ['*'];
    for (const region of regions) {
      let amounts = this.#usage.get(region);
      if (amounts === undefined) this.#usage.set(region, (amounts = { ...noAmounts }));
      amounts.containers += sign;
      amounts.cpu_millis += sign * more.cpu_millis;
      amounts.mem_bytes += sign * more.mem_bytes;
      amounts.ports += sign * more.ports;
      amounts.disk_bytes += sign * more.disk_bytes;
    }
  }
}
