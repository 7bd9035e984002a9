/** The order of a tenant's lists: by `insertedAtMs`, then by id. Pure. */
import type { ContainerId, PeerId } from '../../schemas/ids.ts';
import type { ListCursor } from '../../schemas/api/cursor.ts';

/** A list is in parts of so many items at most: a change moves those of one part alone. */
const partItems = 512;

/** Items in order, to be read from any place. Each is added once; most are the last then. */
export class Ordered<T> {
  readonly #compare: (one: T, other: T) => number;
  /** None is empty. */
  readonly #parts: T[][] = [];

  constructor(compare: (one: T, other: T) => number) {
    this.#compare = compare;
  }

  add(item: T): void {
    const last = this.#parts.at(-1);
    const isLast = last === undefined || this.#compare(last.at(-1) as T, item) <= 0;
    const [at, index] = isLast
      ? [this.#parts.length - 1, last?.length ?? 0]
      : this.#placeOf((other) => this.#compare(other, item) < 0);
    const part = this.#parts[at];
    if (part === undefined) {
      this.#parts.push([item]);
      return;
    }
    part.splice(index, 0, item);
    if (part.length > partItems) this.#parts.splice(at + 1, 0, part.splice(partItems / 2));
  }

  delete(item: T): void {
    const [at, index] = this.#placeOf((other) => this.#compare(other, item) < 0);
    const part = this.#parts[at];
    if (part === undefined || this.#compare(part[index] as T, item) !== 0) return;
    part.splice(index, 1);
    if (part.length === 0) this.#parts.splice(at, 1);
  }

  /** Items from the first that is not below the place. */
  *from(isBelow: (item: T) => boolean): Generator<T, void, void> {
    const [first, start] = this.#placeOf(isBelow);
    for (let at = first; at < this.#parts.length; at++) {
      const part = this.#parts[at] as T[];
      for (let index = at === first ? start : 0; index < part.length; index++) yield part[index] as T;
    }
  }

  /** Items backwards, from the last that is below the place. */
  *before(isBelow: (item: T) => boolean): Generator<T, void, void> {
    const [last, end] = this.#placeOf(isBelow);
    for (let at = last; at >= 0; at--) {
      const part = this.#parts[at] ?? [];
      for (let index = (at === last ? end : part.length) - 1; index >= 0; index--) yield part[index] as T;
    }
  }

  /** The part of the first item that is not below the place, and its index there. */
  #placeOf(isBelow: (item: T) => boolean): readonly [at: number, index: number] {
    const at = firstNot(this.#parts, (part) => isBelow(part.at(-1) as T));
    return [at, firstNot(this.#parts[at] ?? [], isBelow)];
  }
}

/** The index of the first that is not below, by a binary search. */
function firstNot<T>(items: readonly T[], isBelow: (item: T) => boolean): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBelow(items[middle] as T)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** An item of a list. */
export interface Listed {
  readonly insertedAtMs: number;
  readonly id: ContainerId | PeerId;
}

/** A place in a list; the id may be empty, which is before all others of its time. */
export interface At {
  readonly insertedAtMs: number;
  readonly id: string;
}

export const isBefore = (item: At, place: At): boolean =>
  item.insertedAtMs < place.insertedAtMs || (item.insertedAtMs === place.insertedAtMs && item.id < place.id);

/** The items of a list by id, to be read in its order from any place. */
export interface ListView<T extends Listed> extends ReadonlyMap<T['id'], T> {
  /** Items from the newest that is before the place; from the newest of all if it is `null`. */
  newestFirst(before: At | null): Iterable<T>;
  /** Items from this place on; from the oldest if it is `null`. */
  oldestFirst(from: At | null): Iterable<T>;
}

export class List<T extends Listed> extends Map<T['id'], T> implements ListView<T> {
  /** The items may change, but not their places. */
  readonly #places = new Ordered<Listed>((one, other) => (isBefore(one, other) ? -1 : isBefore(other, one) ? 1 : 0));

  override set(id: T['id'], item: T): this {
    if (!this.has(id)) this.#places.add({ insertedAtMs: item.insertedAtMs, id });
    return super.set(id, item);
  }

  override delete(id: T['id']): boolean {
    const item = this.get(id);
    if (item !== undefined) this.#places.delete(item);
    return super.delete(id);
  }

  *newestFirst(before: At | null): Generator<T, void, void> {
    yield* this.#at(this.#places.before((place) => before === null || isBefore(place, before)));
  }

  *oldestFirst(from: At | null): Generator<T, void, void> {
    yield* this.#at(this.#places.from((place) => from !== null && isBefore(place, from)));
  }

  *#at(places: Iterable<Listed>): Generator<T, void, void> {
    for (const { id } of places) {
      const item = this.get(id);
      if (item !== undefined) yield item;
    }
  }
}

/** The later of the two. */
export const newestOf = (newest: ListCursor | null, { insertedAtMs, id }: Listed): ListCursor =>
  newest !== null && !isBefore(newest, { insertedAtMs, id }) ? newest : { insertedAtMs, id };

/**
 * Above every other of the tenant in the order of the list, whatever the clock and the gateways'
 * ids do: a page that ended before it was made never has to hold it.
 */
export function insertionMs(newest: ListCursor | null, id: Listed['id'], nowMs: number): number {
  if (newest === null || nowMs > newest.insertedAtMs) return nowMs;
  return id > newest.id ? newest.insertedAtMs : newest.insertedAtMs + 1;
}
