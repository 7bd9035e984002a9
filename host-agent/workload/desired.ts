/**
 * The desired set of this host: a set per partition, each from the one process that owns it,
 * ordered by (epoch, revision). Pure: what to make of answers; `sync.ts` asks, `desired-store.ts`
 * keeps.
 */
import type { ContainerId } from '../../schemas/ids.ts';
import type { DesiredContainer, SyncAnswer } from '../../schemas/wire/host.ts';

export interface PartitionSet {
  readonly epoch: number;
  readonly revision: number;
  readonly containers: readonly DesiredContainer[];
  readonly hold: readonly ContainerId[];
}

export interface DesiredSet {
  readonly cluster: string;
  /** Null until the control plane, or the disk, has told. */
  readonly partitions: number | null;
  readonly sets: ReadonlyMap<number, PartitionSet>;
  /** Partitions whose owner has answered in the life of this process. */
  readonly heard: ReadonlySet<number>;
}

export const emptyDesired = (cluster: string): DesiredSet => ({
  cluster,
  partitions: null,
  sets: new Map(),
  heard: new Set(),
});

/** Every partition is known, from its owner or from disk. */
export const isComplete = ({ partitions, sets }: DesiredSet): boolean =>
  partitions !== null && sets.size === partitions;

/**
 * Every partition's owner has answered in this process' life: what is absent now is an orphan
 * (invariant A4). The disk is not enough: a container may have been made, and the agent killed,
 * before its set was written.
 */
export const isConfirmed = ({ partitions, heard }: DesiredSet): boolean =>
  partitions !== null && heard.size === partitions;

export const isOlder = (left: Order, right: Order): boolean =>
  left.epoch < right.epoch || (left.epoch === right.epoch && left.revision < right.revision);
type Order = Pick<PartitionSet, 'epoch' | 'revision'>;

export type Refusal =
  | { readonly kind: 'foreign_cluster'; readonly cluster: string }
  | { readonly kind: 'other_partitions'; readonly partitions: number };

/**
 * An answer of another cluster, or of one that was initialised anew: nothing in it may touch a
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

/** What the owner of one partition said, all its parts together. */
export type PartitionAnswer =
  | {
      readonly kind: 'same';
      readonly partition: number;
      readonly epoch: number;
      readonly revision: number;
      readonly gone: Gone;
    }
  | { readonly kind: 'set'; readonly partition: number; readonly set: PartitionSet; readonly gone: Gone };

/** Of the strangers that were named: those that the owner has given away. */
export type Gone = NonNullable<SyncAnswer['gone']>;

/**
 * Puts the parts of many owners' answers together. Owners that overlap in a takeover are kept apart
 * by their order.
 */
export class Assembly {
  readonly #parts = new Map<string, Map<number, SyncAnswer>>();

  /** The whole answer, once its last part is here. */
  add(answer: SyncAnswer): PartitionAnswer | undefined {
    const { partition, epoch, revision } = answer;
    if (answer.same) return { kind: 'same', partition, epoch, revision, gone: answer.gone ?? [] };
    const key = `${partition}/${epoch}/${revision}/${answer.parts}`;
    const parts = this.#parts.get(key) ?? new Map<number, SyncAnswer>();
    this.#parts.set(key, parts);
    if (answer.part < answer.parts) parts.set(answer.part, answer);
    if (parts.size < answer.parts) return undefined;
    const ordered = [...parts.values()].sort((left, right) => left.part - right.part);
    return {
      kind: 'set',
      partition,
      set: {
        epoch,
        revision,
        containers: ordered.flatMap((part) => part.containers),
        hold: ordered.flatMap((part) => part.hold),
      },
      gone: ordered.flatMap((part) => part.gone ?? []),
    };
  }
}

/** The set with one partition's answer taken in; the same object where the answer is old. */
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
  const isHeard = desired.heard.has(partition);
  if (next === held && isHeard && desired.partitions === partitions) return desired;
  return {
    cluster: desired.cluster,
    partitions,
    sets: next === held ? desired.sets : new Map(desired.sets).set(partition, next),
    heard: isHeard ? desired.heard : new Set(desired.heard).add(partition),
  };
}

/**
 * Undefined: the answer is older than what is held, or speaks of something that is not held any
 * more.
 */
function nextSet(
  held: PartitionSet | undefined,
  answer: PartitionAnswer,
  asked: Order | undefined,
): PartitionSet | undefined {
  switch (answer.kind) {
    case 'set':
      if (held === undefined || isOlder(held, answer.set)) return answer.set;
      return isOlder(answer.set, held) ? undefined : held;
    case 'same': {
      const { epoch, revision } = answer;
      if (held === undefined || asked === undefined || isOlder(answer, held)) return undefined;
      // "Same" is said of what was held when the question was asked.
      if (asked.epoch !== held.epoch || asked.revision !== held.revision) return undefined;
      return isOlder(held, answer) ? { ...held, epoch, revision } : held;
    }
  }
}

/**
 * A verdict about strangers is of one version of a set: beside another it says nothing of what came
 * or went between.
 */
export function isOfVersionHeld(desired: DesiredSet, answer: PartitionAnswer): boolean {
  const held = desired.sets.get(answer.partition);
  const { epoch, revision } = answer.kind === 'same' ? answer : answer.set;
  return held?.epoch === epoch && held.revision === revision;
}

export const containersOf = (desired: DesiredSet): DesiredContainer[] =>
  [...desired.sets.values()].flatMap((set) => set.containers);

export const heldIdsOf = (desired: DesiredSet): ContainerId[] => [...desired.sets.values()].flatMap((set) => set.hold);
