/**
 * The past of a stream, in pages. A subject cannot be read backwards, so a page that begins with
 * the newest looks at windows of the stream, one before the other; where they have little of the
 * subject, they grow.
 */
import { createSemaphore } from '../../lib/semaphore.ts';
import type { ReadMessage } from '../../lib/nats/direct-reads.ts';
import type { PastCursor } from '../../schemas/api/cursor.ts';
import type { SubjectReader } from './subject-reader.ts';

/** Pages that are read at a time. */
const readsAtOnce = 8;
/** Positions of the stream that a page looks at first; then more and more. */
const firstWindow = 256;
/** Distance of the positions between which a time lies. */
const boundaryWidth = 16;
/** Factor by which a window grows, and the numbers of messages that are many or few for one. */
const growth = 8;
const many = 512;
const few = 32;

/** `asc`: the oldest first. */
export type Order = 'asc' | 'desc';

/** An item of a message, and the message's position in the stream; `undefined` if not there yet. */
export interface Placed<T> {
  readonly item: T;
  readonly at: number | undefined;
}

/** A kind of stream: its items, and the distance of their times from those of their storage. */
export interface PastKind<T> {
  itemsOf(message: ReadMessage): readonly T[];
  /** An item may be stored so long before its own time: clocks differ. */
  readonly aheadMs: number;
  /**
   * An item is stored by then, however long the stream was away; or, where the items of a subject
   * are in the order of their times, the time of an item.
   */
  readonly late: { readonly byMs: number } | { readonly timeOf: (item: T) => number };
  /** Messages that a page looks at, at most: filters may match few of them. */
  readonly pageMessages: number;
}

export interface PastRange<T> {
  readonly subject: string;
  readonly order: Order;
  /** Times in milliseconds; what is of `toMs` is not in the range. */
  readonly fromMs: number | undefined;
  readonly toMs: number | undefined;
  /** The first position to look at; by default the beginning of the range. */
  readonly at: number | undefined;
  readonly matches: (placed: Placed<T>) => boolean;
  /** Number of items wanted. */
  readonly wanted: number;
  /** Messages to look at, at most; by default as many as a page of this kind does. */
  readonly messages?: number;
}

export interface PastFound<T> {
  /** In the order of the range, as they lie in the stream; all that match up to `next`. */
  readonly items: readonly Placed<T>[];
  /** The first position that was not looked at; `undefined` if there is none. */
  readonly next: number | undefined;
  /** The item that was looked at last, whether it matches or not. */
  readonly edge: T | undefined;
}

export class PastReader<T> {
  readonly #reader: SubjectReader;
  readonly #kind: PastKind<T>;
  readonly #semaphore = createSemaphore(readsAtOnce);

  constructor(reader: SubjectReader, kind: PastKind<T>) {
    this.#reader = reader;
    this.#kind = kind;
  }

  /** More items than wanted where the last message that was looked at has more. */
  find(range: PastRange<T>): Promise<PastFound<T>> {
    return this.#semaphore.run(async () => {
      const [floor, ceiling] = await Promise.all([this.#floorOf(range), this.#ceilingOf(range)]);
      return range.order === 'asc' ? this.#onward(range, floor, ceiling) : this.#backward(range, floor, ceiling);
    });
  }

  async #onward(range: PastRange<T>, floor: number, ceiling: number): Promise<PastFound<T>> {
    const { wanted: items, messages = this.#kind.pageMessages } = range;
    const bounds = { items, messages };
    const { next, last, ...found } = await this.#look(range, floor, ceiling, bounds);
    return { items: found.items, next, edge: last };
  }

  async #backward(range: PastRange<T>, floor: number, ceiling: number): Promise<PastFound<T>> {
    const { subject, wanted, messages = this.#kind.pageMessages } = range;
    let items: readonly Placed<T>[] = [];
    let edge: T | undefined;
    let high = ceiling;
    let width: number = firstWindow;
    let above = ceiling <= floor ? 0 : await this.#reader.countFrom(subject, ceiling);
    for (let looked = 0; high > floor && items.length < wanted && looked < messages;) {
      const low = Math.max(floor, high - width);
      const from = await this.#reader.countFrom(subject, low);
      const inside = from - above;
      if (inside > many && high - low > firstWindow) {
        width = Math.max(firstWindow, Math.floor((high - low) / growth));
        continue;
      }
      if (inside > 0) {
        const found = await this.#look(range, low, high, { items: Infinity, messages: Infinity });
        items = [...items, ...found.items.reverse()];
        edge = found.first ?? edge;
      }
      looked += Math.max(inside, 1);
      above = from;
      high = low;
      if (inside < few) width *= growth;
    }
    return { items, next: high > floor ? high - 1 : undefined, edge };
  }

  /** Looks from one position up to another, within bounds that it outgrows by one page at most. */
  async #look(
    { subject, matches }: PastRange<T>,
    low: number,
    high: number,
    bounds: { readonly items: number; readonly messages: number },
  ): Promise<Pick<PastFound<T>, 'next'> & { readonly items: Placed<T>[]; readonly first?: T; readonly last?: T }> {
    const items: Placed<T>[] = [];
    let ends: { readonly first?: T; readonly last?: T } = {};
    let seq = low;
    for (let looked = 0; seq < high && items.length < bounds.items && looked < bounds.messages;) {
      const { messages, pending } = await this.#reader.page(subject, seq);
      for (const message of messages) {
        if (message.sequence >= high) break;
        const all = this.#kind.itemsOf(message).map((item) => ({ item, at: message.sequence }));
        items.push(...all.filter(matches));
        const [first, last] = [all[0], all.at(-1)];
        if (first !== undefined && last !== undefined) ends = { first: first.item, ...ends, last: last.item };
      }
      const last = messages.at(-1);
      if (pending === 0 || last === undefined) return { items, next: undefined, ...ends };
      looked += messages.length;
      seq = last.sequence + 1;
    }
    return { items, next: seq < high ? seq : undefined, ...ends };
  }

  /** The first position that may have an item of the range. */
  async #floorOf({ subject, order, fromMs, at }: PastRange<T>): Promise<number> {
    if (order === 'asc' && at !== undefined) return at;
    if (fromMs === undefined) return this.#reader.firstOf(subject);
    const { late } = this.#kind;
    if ('byMs' in late) return this.#reader.firstSince(subject, fromMs - this.#kind.aheadMs);
    return (await this.#boundary(subject, fromMs, late)).low;
  }

  /** The first position that certainly has none. */
  async #ceilingOf({ subject, order, toMs, at }: PastRange<T>): Promise<number> {
    if (order === 'desc' && at !== undefined) return at + 1;
    const end = ((await this.#reader.last(subject))?.sequence ?? 0) + 1;
    if (toMs === undefined) return end;
    const { late } = this.#kind;
    if ('byMs' in late) return Math.min(end, await this.#reader.firstSince(subject, toMs + late.byMs));
    return Math.min(end, (await this.#boundary(subject, toMs, late)).high);
  }

  /**
   * Two positions close to each other, between which the first item of this time or later is,
   * however late it was stored.
   */
  async #boundary(subject: string, ms: number, { timeOf }: { readonly timeOf: (item: T) => number }) {
    let low = await this.#reader.firstSince(subject, ms - this.#kind.aheadMs);
    if (low === Infinity) return { low, high: low };
    const isEarlier = async (seq: number): Promise<boolean> => {
      const message = await this.#reader.firstFrom(subject, seq);
      if (message === undefined) return false;
      const [item] = this.#kind.itemsOf(message);
      return item === undefined || timeOf(item) < ms;
    };
    let width = boundaryWidth;
    while (await isEarlier(low + width)) {
      low += width;
      width *= growth;
    }
    let high = low + width;
    while (high - low > boundaryWidth) {
      const middle = Math.floor((low + high) / 2);
      if (await isEarlier(middle)) low = middle;
      else high = middle;
    }
    return { low, high };
  }
}

export interface PastPage<T> {
  readonly items: readonly T[];
  readonly next: PastCursor | undefined;
}

/** Items in their order, each once, as a page. Pure. */
export function pageOf<T extends { readonly id: string }>(
  placed: readonly Placed<T>[],
  { next }: Pick<PastFound<T>, 'next'>,
  { cursor, limit }: { readonly cursor: PastCursor | undefined; readonly limit: number },
): PastPage<T> {
  const seen = new Set<string>();
  const unique = placed.filter(({ item: { id } }) => !seen.has(id) && seen.add(id));
  const given = unique.slice(0, limit);
  const items = given.map(({ item }) => item);
  const last = given.at(-1);
  const id = last?.item.id ?? cursor?.id ?? '';
  if (unique.length > limit) return { items, next: { at: last?.at, id } };
  return { items, next: next === undefined ? undefined : { at: next, id } };
}
