/**
 * Readers of the same thing share a read that has not begun yet: one read is under way, and all
 * that come meanwhile share the next. So a read begins after every request that it serves, and many
 * readers cost as much as one.
 */

interface Line<T> {
  readonly underWay: Promise<T>;
  next: Promise<T> | undefined;
}

export class SharedReads<T> {
  readonly #lines = new Map<string, Line<T>>();

  /** @param read may be another reader's; it must depend on nothing but the key */
  of(key: string, read: () => Promise<T>): Promise<T> {
    const line = this.#lines.get(key);
    if (line === undefined) return this.#begin(key, read);
    const begin = (): Promise<T> => this.#begin(key, read);
    // The failure of one read is not that of the next.
    return (line.next ??= line.underWay.then(begin, begin));
  }

  /** Number of reads under way. */
  get size(): number {
    return this.#lines.size;
  }

  #begin(key: string, read: () => Promise<T>): Promise<T> {
    const line: Line<T> = { underWay: read(), next: undefined };
    this.#lines.set(key, line);
    const end = (): void => {
      if (line.next === undefined) this.#lines.delete(key);
    };
    line.underWay.then(end, end);
    return line.underWay;
  }
}
