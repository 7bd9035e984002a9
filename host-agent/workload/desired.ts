/**
 * The desired set of this host: a set per partition, each from the one process that owns it,
 * ordered by (epoch, revision). Pure: it takes in answers; `sync.ts` asks, `desired-store.ts`
 * stores.
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
  /** Null until the control plane or the disk says. */
  readonly partitions: number | null;
  readonly sets: ReadonlyMap<number, PartitionSet>;
  /** Partitions whose owner has answered since this process started. */
  readonly heard: ReadonlySet<number>;
}

export const emptyDesired = (cluster: string): DesiredSet => ({
  cluster,
  partitions: null,
  sets: new Map(),
  heard: new Set(),
});

/** The set of every partition is known, from its owner or from disk. */
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
type Order = Pick<PartitionSet, 'epoch' | 'revision'>;

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
  | { readonly kind: 'set'; readonly partition: number; readonly set: PartitionSet; readonly gone: Gone };

/** Of the strangers in the ask: those that the owner gave away. */
export type Gone = NonNullable<SyncAnswer['gone']>;

/**
 * Joins the parts of answers of many owners. During a takeover, (epoch, revision) keeps the answers
 * of two owners apart.
 */
export class Assembly {
  readonly #parts = new Map<string, Map<number, SyncAnswer>>();

  /** The whole answer, with its last part. */
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
 * Undefined: the answer is older than the known set, or is about a version that is no longer known.
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
      // "Same" refers to the version in the ask.
      if (asked.epoch !== held.epoch || asked.revision !== held.revision) return undefined;
      return isOlder(held, answer) ? { ...held, epoch, revision } : held;
    }
  }
}

/**
 * A verdict about strangers holds for one version of a set: it ignores what changed between that
 * and another.
 */
export function isOfVersionHeld(desired: DesiredSet, answer: PartitionAnswer): boolean {
  const held = desired.sets.get(answer.partition);
  const { epoch, revision } = answer.kind === 'same' ? answer : answer.set;
  return held?.epoch === epoch && held.revision === revision;
}

export const containersOf = (desired: DesiredSet): DesiredContainer[] =>
  [...desired.sets.values()].flatMap((set) => set.containers);

export const heldIdsOf = (desired: DesiredSet): ContainerId[] => [...desired.sets.values()].flatMap((set) => set.hold);
