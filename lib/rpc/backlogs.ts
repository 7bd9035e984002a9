/**
 * The backlogs of all partitions, and which of them share the lane of an owner. What is known of
 * owners is a guess from their answers; a wrong one costs a round trip.
 */
import { subjects } from '../../schemas/wire/subjects.ts';
import { backlogOf, laneKinds, laneOf, moveTo, type Backlog, type Lane, type LaneKind } from './lane.ts';

export class Backlogs {
  readonly #backlogs: Readonly<Record<LaneKind, readonly Backlog[]>>;
  /** By kind and owner: those in use. */
  readonly #lanes = new Map<string, Lane>();
  readonly #onMoved: (to: Lane) => void;

  constructor(partitions: number, onMoved: (to: Lane) => void) {
    const ofKind = (kind: LaneKind): Backlog[] =>
      Array.from({ length: partitions }, (_, partition) => backlogOf(kind, partition));
    this.#backlogs = { read: ofKind('read'), write: ofKind('write'), watch: ofKind('watch') };
    this.#onMoved = onMoved;
  }

  of(kind: LaneKind): readonly Backlog[] {
    return this.#backlogs[kind];
  }

  *all(): Generator<Backlog, void, void> {
    for (const kind of laneKinds) yield* this.#backlogs[kind];
  }

  /** The owner has answered an ask of this backlog. */
  learn(backlog: Backlog, owner: string): void {
    if (backlog.lane.owner === owner) return;
    const { kind } = backlog.lane;
    const key = keyOf(kind, owner);
    let lane = this.#lanes.get(key);
    if (lane === undefined) this.#lanes.set(key, (lane = laneOf(kind, subjects.owner(owner), owner)));
    this.#move(backlog, lane);
  }

  /** The owner does not have the partition: no kind of its asks goes there. */
  unlearn(partition: number, owner: string): void {
    for (const kind of laneKinds) {
      const backlog = this.#backlogs[kind][partition];
      if (backlog?.lane.owner === owner) this.#move(backlog, backlog.ownLane);
    }
  }

  /** One backlog, or every one, leaves the lane of an owner, unless it has left already. */
  leave(lane: Lane, only?: Backlog): void {
    if (lane.owner === undefined) return;
    for (const backlog of only === undefined ? this.#backlogs[lane.kind] : [only]) {
      if (backlog.lane === lane) this.#move(backlog, backlog.ownLane);
    }
  }

  #move(backlog: Backlog, to: Lane): void {
    const from = backlog.lane;
    moveTo(backlog, to);
    this.#onMoved(to);
    const isUsed = this.#backlogs[from.kind].some(({ lane }) => lane === from);
    if (!isUsed && from.owner !== undefined) this.#lanes.delete(keyOf(from.kind, from.owner));
  }
}

const keyOf = (kind: LaneKind, owner: string): string => `${kind} ${owner}`;
