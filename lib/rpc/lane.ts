/**
 * Lanes: which asks share messages, what of them fits into one, and the messages under way. Pure of
 * I/O and of clocks: the client sends and waits.
 *
 * The asks of one kind for one partition wait in its backlog. A lane takes the backlogs of the
 * partitions that it serves to one subject: those of one owner, or of one partition whose owner is
 * not known. A message carries a share of each of its partitions:
 *
 *     share: waiting ──lapse──▶ lapsed
 */
import { Room } from '../fill.ts';
import { backoffMs } from '../time/backoff.ts';
import { encodeAsk, encodeAsks } from '../../schemas/wire/codec.ts';
import { limits } from '../../schemas/limits.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import { isSettled, send, settle, silencesOf, unanswered, type Item } from './item.ts';

/** Messages of a lane without any answer yet; messages under way with asks for one partition. */
export const laneMessagesInFlight = 2;
/** A message without an answer for so long leaves its place in the lane to others. */
export const laneStallMs = 100;

/** Waits and streams poll through a lane of their own. */
const watchLaneMessagesInFlight = 1;

export type LaneKind = 'read' | 'write' | 'watch';
export const laneKinds: readonly LaneKind[] = ['read', 'write', 'watch'];

export interface Lane {
  readonly kind: LaneKind;
  readonly subject: string;
  /** `undefined` for the lane of one partition, whose owner is not known. */
  readonly owner: string | undefined;
  /** Bounds messages that have no answer yet, and the shares of a partition that are under way. */
  readonly maxInFlight: number;
  /** Messages that hold a place. */
  inFlight: number;
  /** The backlogs that are not empty, in the order of their turns. */
  readonly waiting: Set<Backlog>;
}

/** The asks of one kind for one partition. */
export interface Backlog {
  readonly partition: number;
  readonly queue: ItemQueue;
  /** The lane of this partition alone. */
  readonly ownLane: Lane;
  /** Lane of its next asks: the owner's, or its own. */
  lane: Lane;
  /** Its shares of messages that are under way. */
  inFlight: number;
  /** Refusals in a row; it pauses after each. */
  refusals: number;
  pausedUntilMs: number;
}

export function laneOf(kind: LaneKind, subject: string, owner?: string): Lane {
  const maxInFlight = kind === 'watch' ? watchLaneMessagesInFlight : laneMessagesInFlight;
  return { kind, subject, owner, maxInFlight, inFlight: 0, waiting: new Set() };
}

export function backlogOf(kind: LaneKind, partition: number): Backlog {
  const lane = laneOf(kind, subjects.partition(partition));
  const queue = new ItemQueue();
  return { partition, queue, ownLane: lane, lane, inFlight: 0, refusals: 0, pausedUntilMs: 0 };
}

/** Its lane takes it into account again. Called when its queue or its lane has changed. */
export function enlist(backlog: Backlog): void {
  if (backlog.queue.length > 0) backlog.lane.waiting.add(backlog);
}

/** Its next asks go by this lane. */
export function moveTo(backlog: Backlog, lane: Lane): void {
  backlog.lane.waiting.delete(backlog);
  backlog.lane = lane;
  enlist(backlog);
}

export interface Batch {
  readonly payload: string;
  readonly items: readonly Item[];
  /** The backlog of each item. */
  readonly backlogs: readonly Backlog[];
}

/**
 * A first-in first-out queue that costs nothing per item: the head moves, and the array is cut now
 * and then.
 */
export class ItemQueue implements Iterable<Item> {
  #items: (Item | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: Item): void {
    this.#items.push(item);
  }

  *[Symbol.iterator](): Generator<Item, void, void> {
    for (let at = this.#head; at < this.#items.length; at++) {
      const item = this.#items[at];
      if (item !== undefined) yield item;
    }
  }

  /** Takes out the first `count`. */
  drop(count: number): void {
    const to = Math.min(this.#head + count, this.#items.length);
    while (this.#head < to) this.#items[this.#head++] = undefined;
    if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
  }

  /** Items that were sent in vain go before those that came later. */
  putBack(items: readonly Item[]): void {
    this.#items = [...items, ...this.#items.slice(this.#head)];
    this.#head = 0;
  }

  /** Takes out the items that `isGone` picks, in order. */
  takeOut(isGone: (item: Item) => boolean): Item[] {
    const [out, stay]: [Item[], Item[]] = [[], []];
    for (const item of this) (isGone(item) ? out : stay).push(item);
    if (out.length > 0) {
      this.#items = stay;
      this.#head = 0;
    }
    return out;
  }
}

const isReady = ({ queue, inFlight, lane, pausedUntilMs }: Backlog, nowMs: number): boolean =>
  queue.length > 0 && inFlight < lane.maxInFlight && pausedUntilMs <= nowMs;

/**
 * The next message of a lane: at first an equal part of its room for each backlog, then the rest to
 * those that have more. An item that expired while it waited is settled and left out, as is one
 * that a late answer has settled.
 */
export function gather({ waiting }: Lane, nowMs: number): Batch | undefined {
  const ready = [...waiting].filter((backlog) => isReady(backlog, nowMs));
  if (ready.length === 0) return undefined;
  const message = new Message(nowMs);
  const part = {
    items: Math.ceil(limits.batchItems / ready.length),
    bytes: Math.ceil(limits.batchBytes / ready.length),
  };
  const hadTurn = ready.map((backlog) => message.load(backlog, new Room(part)));
  for (const [index, backlog] of ready.entries()) {
    message.load(backlog);
    if (hadTurn[index] !== true && backlog.queue.length > 0) continue;
    waiting.delete(backlog);
    // Behind those that had no turn.
    enlist(backlog);
  }
  return message.batch();
}

class Message {
  readonly #nowMs: number;
  readonly #room = new Room({ bytes: limits.batchBytes, items: limits.batchItems });
  readonly #texts: string[] = [];
  readonly #items: Item[] = [];
  readonly #backlogs: Backlog[] = [];

  constructor(nowMs: number) {
    this.#nowMs = nowMs;
  }

  /**
   * Takes from the backlog what fits, both into the message and into `part` of it.
   * @returns true if anything went in
   */
  load(backlog: Backlog, part?: Room): boolean {
    const before = this.#items.length;
    let passed = 0;
    for (const item of backlog.queue) {
      if (this.#room.isFull || part?.isFull === true) break;
      const budgetMs = Math.floor(item.deadlineMs - this.#nowMs);
      if (budgetMs <= 0) settle(item, unanswered(item));
      if (!isSettled(item)) {
        const text = encodeAsk(item.question, budgetMs);
        const bytes = Buffer.byteLength(text) + 1;
        if (part?.take(bytes) === false || !this.#room.take(bytes)) break;
        this.#texts.push(text);
        this.#items.push(item);
        this.#backlogs.push(backlog);
      }
      passed++;
    }
    backlog.queue.drop(passed);
    return this.#items.length > before;
  }

  batch(): Batch | undefined {
    if (this.#items.length === 0) return undefined;
    return { payload: encodeAsks(this.#texts), items: this.#items, backlogs: this.#backlogs };
  }
}

/** Content of a message for one partition. */
export interface Share {
  readonly backlog: Backlog;
  readonly items: Item[];
  attemptMs: number;
  /** Lapsed: its items were sent again, but an answer to it still counts. */
  state: { readonly phase: 'waiting'; readonly dueAtMs: number } | { readonly phase: 'lapsed' };
  /** In the answers that are being read. */
  heard: 'nothing' | 'answer' | 'refusal';
}

/** A message under way. */
export interface Flight {
  readonly id: string;
  readonly lane: Lane;
  readonly items: readonly Item[];
  /** The share of each item. */
  readonly shareOf: readonly Share[];
  readonly shares: readonly Share[];
  readonly stallsAtMs: number;
  readonly forgetAtMs: number;
  hasPlace: boolean;
  isStalled: boolean;
}

export const lapsed = { phase: 'lapsed' } as const;

export const isLapsed = ({ state }: Share): boolean => state.phase === 'lapsed';

/** The batch was sent as the message `id`: it has a place in the lane, and shares of backlogs. */
export function takeOff(id: string, lane: Lane, { items, backlogs }: Batch, nowMs: number, keptMs: number): Flight {
  const shares = new Map<Backlog, Share>();
  const shareOf = items.map((item, index) => shareIn(shares, item, backlogs[index]!, nowMs));
  for (const item of items) send(item, id);
  for (const { backlog } of shares.values()) backlog.inFlight++;
  lane.inFlight++;
  return {
    id,
    lane,
    items,
    shareOf,
    shares: [...shares.values()],
    stallsAtMs: nowMs + laneStallMs,
    forgetAtMs: nowMs + keptMs,
    hasPlace: true,
    isStalled: false,
  };
}

/** The share that the item goes with; its attempt is as long as its most silent item needs. */
function shareIn(shares: Map<Backlog, Share>, item: Item, backlog: Backlog, nowMs: number): Share {
  let share = shares.get(backlog);
  if (share === undefined) {
    share = { backlog, items: [], attemptMs: 0, state: lapsed, heard: 'nothing' };
    shares.set(backlog, share);
  }
  share.items.push(item);
  const attemptMs = backoffMs(silencesOf(item), { minMs: limits.attemptMs, maxMs: limits.attemptMaxMs });
  if (attemptMs > share.attemptMs) {
    share.attemptMs = attemptMs;
    share.state = { phase: 'waiting', dueAtMs: nowMs + attemptMs };
  }
  return share;
}
