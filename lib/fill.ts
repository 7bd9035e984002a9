/**
 * Fills messages, pages and journal entries up to a number of bytes and of items. The first piece
 * always goes in: a piece that exceeds the bound by itself would otherwise never leave.
 */
export interface Bounds {
  readonly bytes: number;
  readonly items?: number;
}

/** The room that is left in one message. */
export class Room {
  readonly #bounds: Bounds;
  #bytes = 0;
  #items = 0;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  /** True if no further item fits, whatever its size. */
  get isFull(): boolean {
    return this.#items >= (this.#bounds.items ?? Infinity) && this.#items > 0;
  }

  /** Takes the piece if it fits. */
  take(bytes: number, items = 1): boolean {
    const { bytes: maxBytes, items: maxItems = Infinity } = this.#bounds;
    const isOver = this.#bytes + bytes > maxBytes || this.#items + items > maxItems;
    if (isOver && this.#items > 0) return false;
    this.#bytes += bytes;
    this.#items += items;
    return true;
  }
}

export interface Piece<R> {
  readonly value: R;
  readonly bytes: number;
  /** Weight of the piece in the bound of items; 1 unless stated. */
  readonly items?: number;
}

export interface Filled<T, R> {
  readonly values: R[];
  /** Number of items of the source that went in or were left out. */
  readonly passed: number;
  /** The first item that did not go in; `undefined` if the source has ended. */
  readonly next: T | undefined;
}

/** Takes as much of `source` as fits, in order. Leaves out the items that `cut` makes undefined. */
export function fill<T, R>(source: Iterable<T>, bounds: Bounds, cut: (item: T) => Piece<R> | undefined): Filled<T, R> {
  const room = new Room(bounds);
  const values: R[] = [];
  let passed = 0;
  for (const item of source) {
    if (room.isFull) return { values, passed, next: item };
    const piece = cut(item);
    if (piece !== undefined) {
      if (!room.take(piece.bytes, piece.items)) return { values, passed, next: item };
      values.push(piece.value);
    }
    passed++;
  }
  return { values, passed, next: undefined };
}

/** Size of a text in a list, with the comma or line break behind it. */
export const line = (text: string): Piece<string> => ({ value: text, bytes: Buffer.byteLength(text) + 1 });
