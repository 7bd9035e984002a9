/** The order of a tenant's lists: by `insertedAtMs`, then by id. Pure. */
import type { ContainerId, PeerId } from '../../schemas/ids.ts';
import type { ListCursor } from '../../schemas/api/cursor.ts';

/** So many new items are each put into their places; more are sorted with all. */
const fewItems = 32;

/**
 * Items in order, to be read from any place. Each is added once. New ones are mostly the last;
 * others are put into their places by the next read.
 */
export class Ordered<T> {
  readonly #compare: (one: T, other: T) => number;
  readonly #items: T[] = [];
  #late: T[] = [];

  constructor(compare: (one: T, other: T) => number) {
    this.#compare = compare;
  }

  add(item: T): void {
    const last = this.#items.at(-1);
    if (last === undefined || this.#compare(last, item) <= 0) this.#items.push(item);
    else this.#late.push(item);
  }

  #order(): void {
    const late = this.#late;
    this.#late = [];
    if (late.length > fewItems) {
      for (const item of late) this.#items.push(item);
      this.#items.sort(this.#compare);
    } else {
      for (const item of late)
        this.#items.splice(
          this.#indexOf((other) => this.#compare(other, item) < 0),
          0,
          item,
        );
    }
  }

  delete(item: T): void {
    const at = this.#indexOf((other) => this.#compare(other, item) < 0);
    const found = this.#items[at];
    if (found !== undefined && this.#compare(found, item) === 0) this.#items.splice(at, 1);
  }

  /** Items from the first that is not below the place. */
  *from(isBelow: (item: T) => boolean): Generator<T, void, void> {
    for (let at = this.#indexOf(isBelow); at < this.#items.length; at++) yield this.#items[at] as T;
  }

  /** Items backwards, from the last that is below the place. */
  *before(isBelow: (item: T) => boolean): Generator<T, void, void> {
    for (let at = this.#indexOf(isBelow) - 1; at >= 0; at--) yield this.#items[at] as T;
  }

  /** The index of the first item that is not below the place. */
  #indexOf(isBelow: (item: T) => boolean): number {
    if (this.#late.length > 0) this.#order();
    let [low, high] = [0, this.#items.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isBelow(this.#items[middle] as T)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
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
