/**
 * One queue of asks to one partition's owner, and what of it fits into one message. Pure of I/O and
 * of clocks: the client sends and waits.
 */
import type { Question } from '../../schemas/wire/asks.ts';
import { encodeAsk, encodeAsks } from '../../schemas/wire/codec.ts';
import { limits } from '../../schemas/limits.ts';
import type { OutcomeCode } from '../../schemas/errors.ts';

/** What became of an ask: the owner's answer, or the gateway's word that there is none. */
export interface Outcome {
  readonly code: OutcomeCode;
  /**
   * JSON of the response's body, as the owner wrote it; empty where the gateway speaks for itself.
   */
  readonly body: string;
}

export type LaneKind = 'read' | 'write' | 'watch';
export const laneKinds: readonly LaneKind[] = ['read', 'write', 'watch'];

export interface Item {
  readonly question: Question;
  /** Of the monotonic clock; it never moves. */
  readonly deadlineMs: number;
  readonly settle: (outcome: Outcome) => void;
  settled: boolean;
  /** The message that carried it last. */
  sentIn: string | undefined;
  /** Rises with every message that carried it and was not answered in time. */
  lostAttempts: number;
  /**
   * It may have been executed: a message that carried it reached somebody, and no outcome came of
   * it.
   */
  perhapsExecuted: boolean;
}

export interface Batch {
  readonly payload: string;
  readonly items: readonly Item[];
}

/**
 * A first-in first-out queue that costs nothing per item: the head moves, and the array is cut now
 * and then.
 */
export class ItemQueue {
  #items: (Item | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: Item): void {
    this.#items.push(item);
  }

  shift(): Item | undefined {
    const item = this.#items[this.#head];
    if (item === undefined) return undefined;
    this.#items[this.#head++] = undefined;
    if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** What was sent in vain goes before what came later. */
  putBack(items: readonly Item[]): void {
    this.#items = [...items, ...this.#items.slice(this.#head)];
    this.#head = 0;
  }

  /** Takes out what `gone` says, in order. */
  takeOut(gone: (item: Item) => boolean): Item[] {
    const [out, stay]: [Item[], Item[]] = [[], []];
    for (const item of this.#items.slice(this.#head)) if (item !== undefined) (gone(item) ? out : stay).push(item);
    if (out.length > 0) {
      this.#items = stay;
      this.#head = 0;
    }
    return out;
  }
}

/** The first outcome counts; an answer to an earlier attempt may be followed by one to a later. */
export function settle(item: Item, outcome: Outcome): void {
  if (item.settled) return;
  item.settled = true;
  item.settle(outcome);
}

/**
 * The next message: as many items as its bounds in number and bytes hold. An item of its own size
 * over the bound goes alone; what has expired while it waited is settled and left out.
 */
export function gather(queue: ItemQueue, nowMs: number): Batch | undefined {
  const lines: string[] = [];
  const items: Item[] = [];
  let bytes = 0;
  while (items.length < limits.batchItems) {
    const item = queue.shift();
    if (item === undefined) break;
    const budgetMs = Math.floor(item.deadlineMs - nowMs);
    if (budgetMs <= 0) settle(item, verdictUnanswered(item));
    if (item.settled) continue;
    const line = encodeAsk({ ...item.question, budgetMs });
    const lineBytes = Buffer.byteLength(line) + 1;
    if (items.length > 0 && bytes + lineBytes > limits.batchBytes) {
      queue.putBack([item]);
      break;
    }
    lines.push(line);
    items.push(item);
    bytes += lineBytes;
  }
  return items.length === 0 ? undefined : { payload: encodeAsks(lines), items };
}

/**
 * What to say of one without an answer: a write that may have been executed is told apart from one
 * that was not (A3, A5).
 */
export function verdictUnanswered(item: Item): Outcome {
  const isWrite = 'op' in item.question;
  return { code: isWrite && item.perhapsExecuted ? 'timeout' : 'unavailable', body: '' };
}
