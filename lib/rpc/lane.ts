/**
 * One queue of asks to one partition's owner, and what of it fits into one message. Pure of I/O and
 * of clocks: the client sends and waits.
 */
import { fill } from '../fill.ts';
import { encodeAsk, encodeAsks } from '../../schemas/wire/codec.ts';
import { limits } from '../../schemas/limits.ts';
import { isSettled, settle, unanswered, type Item } from './item.ts';

export type LaneKind = 'read' | 'write' | 'watch';
export const laneKinds: readonly LaneKind[] = ['read', 'write', 'watch'];

export interface Batch {
  readonly payload: string;
  readonly items: readonly Item[];
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

const bounds = { bytes: limits.batchBytes, items: limits.batchItems };

/**
 * The next message. An item that expired while it waited is settled and left out, as is one that a
 * late answer has settled.
 */
export function gather(queue: ItemQueue, nowMs: number): Batch | undefined {
  const { values, passed } = fill(queue, bounds, (item) => {
    const budgetMs = Math.floor(item.deadlineMs - nowMs);
    if (budgetMs <= 0) settle(item, unanswered(item));
    if (isSettled(item)) return undefined;
    const text = encodeAsk({ ...item.question, budgetMs });
    return { value: { item, text }, bytes: Buffer.byteLength(text) + 1 };
  });
  queue.drop(passed);
  if (values.length === 0) return undefined;
  return { payload: encodeAsks(values.map(({ text }) => text)), items: values.map(({ item }) => item) };
}
