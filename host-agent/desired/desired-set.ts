/**
 * The desired set of this host: a set per partition, each from the one process that owns it,
 * ordered by (epoch, revision). Pure: it takes in answers; `sync.ts` asks, `store.ts` stores.
 */
import type { ContainerId } from '../../schemas/ids.ts';
import type { DesiredContainer, SyncAnswer } from '../../schemas/wire/host.ts';
import { basisIn, digestOf } from '../../schemas/wire/set-digest.ts';

export interface PartitionSet {
  readonly epoch: number;
  readonly revision: number;
  readonly containers: readonly DesiredContainer[];
  readonly hold: readonly ContainerId[];
  /** The prefix of the owner's digests of this set; absent if the owner gives no digests. */
  readonly basis?: string;
}

export interface DesiredSet {
  readonly cluster: string;
  /** `null` until the control plane or the disk gives the number. */
  readonly partitions: number | null;
  readonly sets: ReadonlyMap<number, PartitionSet>;
  /** Partitions whose owner has answered since this process started. */
  readonly heard: ReadonlySet<number>;
  /**
   * Partitions where a change did not lead to the set that the owner has. The next ask takes their
   * whole sets.
   */
  readonly doubted: ReadonlySet<number>;
}

export const emptyDesired = (cluster: string): DesiredSet => ({
  cluster,
  partitions: null,
  sets: new Map(),
  heard: new Set(),
  doubted: new Set(),
});

const digests = new WeakMap<PartitionSet, string>();

/** The digest of the set as this agent has it; `undefined` if the owner gives no digests. */
export function digestOfSet(set: PartitionSet): string | undefined {
  const { basis, containers, hold } = set;
  if (basis === undefined) return undefined;
  let digest = digests.get(set);
  if (digest === undefined) digests.set(set, (digest = digestOf(basis, containers, hold)));
  return digest;
}

/** `true` if the set of every partition is known, from its owner or from disk. */
export const isComplete = ({ partitions, sets }: DesiredSet): boolean =>
  partitions !== null && sets.size === partitions;

/**
 * The owner of every partition has answered since this process started: what is absent now is an
 * orphan (invariant A4). The sets on disk are not enough: the agent may have made a container and
 * been killed before it wrote the set.
 */
export const isConfirmed = ({ partitions, heard }: DesiredSet): boolean =>
  partitions !== null && heard.size === partitions;

export const isOlder = (left: Order, right: Order): boolean =>
  left.epoch < right.epoch || (left.epoch === right.epoch && left.revision < right.revision);
export type Order = Pick<PartitionSet, 'epoch' | 'revision'>;

export type Refusal =
  | { readonly kind: 'foreign_cluster'; readonly cluster: string }
  | { readonly kind: 'other_partitions'; readonly partitions: number };

/**
 * Refuses an answer of another cluster, or of a cluster that was created again: it must not touch a
 * container.
 */
export function refuse(desired: DesiredSet, answer: SyncAnswer): Refusal | undefined {
  if (answer.cluster !== desired.cluster) return { kind: 'foreign_cluster', cluster: answer.cluster };
  const isOther = desired.partitions !== null && desired.partitions !== answer.partitions;
  if (isOther || answer.partition >= answer.partitions) {
    return { kind: 'other_partitions', partitions: answer.partitions };
  }
  return undefined;
}

/** The whole answer of the owner of one partition. */
export type PartitionAnswer =
  | {
      readonly kind: 'same';
      readonly partition: number;
      readonly epoch: number;
      readonly revision: number;
      readonly gone: Gone;
    }
  | {
      readonly kind: 'set';
      readonly partition: number;
      readonly set: PartitionSet;
      readonly gone: Gone;
      readonly members: MembersAnswer;
    }
  | {
      readonly kind: 'changes';
      readonly partition: number;
      readonly since: Order;
      /** The digest of the set that the changes lead to. */
      readonly digest: string;
      /** Contains only the containers that were added or changed. */
      readonly set: PartitionSet;
      readonly removed: readonly ContainerId[];
      readonly gone: Gone;
      readonly members: MembersAnswer;
    };

/** The part of an answer that is about the members of tenants (members.ts). */
export interface MembersAnswer {
  readonly epoch: number;
  readonly tenants: NonNullable<SyncAnswer['tenants']>;
  readonly members: NonNullable<SyncAnswer['members']>;
  readonly gone: NonNullable<SyncAnswer['members_gone']>;
  readonly mesh: NonNullable<SyncAnswer['mesh']>;
  readonly servers: NonNullable<SyncAnswer['servers']>;
  readonly tenantsGone: NonNullable<SyncAnswer['tenants_gone']>;
}

/** The containers of `strangers` in the ask that the owner gave away. */
export type Gone = NonNullable<SyncAnswer['gone']>;

/**
 * Joins the parts of answers of many owners. During a takeover, (epoch, revision) keeps the answers
 * of two owners apart.
 */
export class Assembly {
  readonly #parts = new Map<string, Map<number, SyncAnswer>>();

  /** The whole answer, once its last part has come; until then `undefined`. */
  add(answer: SyncAnswer): PartitionAnswer | undefined {
    const { partition, epoch, revision, since, digest } = answer;
    if (answer.same) return { kind: 'same', partition, epoch, revision, gone: answer.gone ?? [] };
    const key = `${partition}/${epoch}/${revision}/${answer.parts}/${since?.join('/') ?? 'whole'}`;
    const parts = this.#parts.get(key) ?? new Map<number, SyncAnswer>();
    this.#parts.set(key, parts);
    if (answer.part < answer.parts) parts.set(answer.part, answer);
    if (parts.size < answer.parts) return undefined;
    const ordered = [...parts.values()].sort((left, right) => left.part - right.part);
    const set = {
      epoch,
      revision,
      containers: ordered.flatMap((part) => part.containers),
      hold: ordered.flatMap((part) => part.hold),
      ...(digest === undefined ? {} : { basis: basisIn(digest) }),
    };
    const gone = ordered.flatMap((part) => part.gone ?? []);
    const members = {
      epoch,
      tenants: ordered.flatMap((part) => part.tenants ?? []),
      members: ordered.flatMap((part) => part.members ?? []),
      gone: ordered.flatMap((part) => part.members_gone ?? []),
      mesh: ordered.flatMap((part) => part.mesh ?? []),
      servers: ordered.flatMap((part) => part.servers ?? []),
      tenantsGone: ordered.flatMap((part) => part.tenants_gone ?? []),
    };
    if (since === undefined) return { kind: 'set', partition, set, gone, members };
    const removed = ordered.flatMap((part) => part.removed ?? []);
    const [sinceEpoch, sinceRevision] = since;
    const order = { epoch: sinceEpoch, revision: sinceRevision };
    return { kind: 'changes', partition, since: order, digest: digest ?? '', set, removed, gone, members };
  }
}

/** The set with one partition's answer; the same object where the answer changes nothing. */
export function accept(
  desired: DesiredSet,
  partitions: number,
  answer: PartitionAnswer,
  heldAtAsk: ReadonlyMap<number, Order>,
): DesiredSet {
  const { partition } = answer;
  const held = desired.sets.get(partition);
  const next = nextSet(held, answer, heldAtAsk.get(partition));
  if (next === undefined) return desired;
  if (next === 'other') return { ...desired, doubted: new Set(desired.doubted).add(partition) };
  const isHeard = desired.heard.has(partition);
  const isDoubted = desired.doubted.has(partition);
  if (next === held && isHeard && !isDoubted && desired.partitions === partitions) return desired;
  return {
    cluster: desired.cluster,
    partitions,
    sets: next === held ? desired.sets : new Map(desired.sets).set(partition, next),
    heard: isHeard ? desired.heard : new Set(desired.heard).add(partition),
    doubted: isDoubted ? new Set([...desired.doubted].filter((other) => other !== partition)) : desired.doubted,
  };
}

/**
 * `undefined` if the answer is older than the known set, or refers to a version that is no longer
 * known. `other` if the changes do not lead to the set that the owner has.
 */
function nextSet(
  held: PartitionSet | undefined,
  answer: PartitionAnswer,
  asked: Order | undefined,
): PartitionSet | 'other' | undefined {
  switch (answer.kind) {
    case 'set':
      if (held === undefined || isOlder(held, answer.set)) return answer.set;
      if (isOlder(answer.set, held)) return undefined;
      return isEqual(held, answer.set) ? held : answer.set;
    case 'changes': {
      // The changes refer to the version in the ask.
      if (held === undefined || !isOfVersion(held, answer.since) || isOlder(answer.set, held)) return undefined;
      const next = changed(held, answer.set, answer.removed);
      return digestOfSet(next) === answer.digest ? next : 'other';
    }
    case 'same': {
      const { epoch, revision } = answer;
      if (held === undefined || asked === undefined || isOlder(answer, held)) return undefined;
      // "Same" refers to the version in the ask.
      if (!isOfVersion(held, asked)) return undefined;
      return isOlder(held, answer) ? { ...held, epoch, revision } : held;
    }
  }
}

export const isOfVersion = (held: Order, { epoch, revision }: Order): boolean =>
  held.epoch === epoch && held.revision === revision;

/** Compares sets of one version; if they differ, this agent has lost a change. */
const isEqual = (held: PartitionSet, given: PartitionSet): boolean =>
  given.basis === undefined || digestOfSet(held) === digestOfSet(given);

/** Unchanged containers stay the same objects, so that they are not compared again. */
export function changed(held: PartitionSet, news: PartitionSet, removed: readonly ContainerId[]): PartitionSet {
  const containers = new Map(held.containers.map((container) => [container.id, container]));
  for (const id of removed) containers.delete(id);
  for (const container of news.containers) containers.set(container.id, container);
  return { ...news, containers: [...containers.values()] };
}

/** The version that an answer refers to. */
export const orderOf = (answer: PartitionAnswer): Order => (answer.kind === 'same' ? answer : answer.set);

/**
 * A verdict about strangers holds for one version of a set: it ignores what changed between that
 * and another.
 */
export function isOfVersionHeld(desired: DesiredSet, answer: PartitionAnswer): boolean {
  const held = desired.sets.get(answer.partition);
  return held !== undefined && isOfVersion(held, orderOf(answer));
}

export const containersOf = (desired: DesiredSet): DesiredContainer[] =>
  [...desired.sets.values()].flatMap((set) => set.containers);

export const heldIdsOf = (desired: DesiredSet): ContainerId[] => [...desired.sets.values()].flatMap((set) => set.hold);
