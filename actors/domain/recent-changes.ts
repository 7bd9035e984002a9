/**
 * The latest changes of containers and peers in a partition, by what they are about (a host, a
 * tenant), in memory alone. An owner that has just loaded the partition knows none. Pure.
 */
import type { ContainerId } from '../../schemas/ids.ts';

interface Change<Key, Id> {
  readonly key: Key;
  readonly id: Id;
}

export class RecentChanges<Key, Id = ContainerId> {
  /** A ring: the change of revision `r` stands at `r mod` its length. */
  readonly #ring: Change<Key, Id>[] = [];
  readonly #kept: number;
  readonly #first: number;
  #last: number;

  /**
   * @param revision before the first change
   * @param kept how many changes are remembered
   */
  constructor(revision: number, kept: number) {
    this.#kept = kept;
    this.#first = this.#last = revision;
  }

  get last(): number {
    return this.#last;
  }

  /**
   * Counts each change: of two in one commit, a reader between them has seen the first alone.
   * @returns the revision that the change makes
   */
  add(key: Key, id: Id): number {
    this.#ring[++this.#last % this.#kept] = { key, id };
    return this.#last;
  }

  /** The ids that changed after a revision; `undefined` if it is older than the oldest change. */
  since(key: Key, revision: number): ReadonlySet<Id> | undefined {
    const changed = this.lastSince(key, revision);
    return changed && new Set(changed.keys());
  }

  /** The same with the revision of the last change of each, in that order. */
  lastSince(key: Key, revision: number): ReadonlyMap<Id, number> | undefined {
    const oldest = Math.max(this.#first, this.#last - this.#kept);
    if (revision < oldest || revision > this.#last) return undefined;
    const changed = new Map<Id, number>();
    for (let number = revision + 1; number <= this.#last; number++) {
      const change = this.#ring[number % this.#kept];
      if (change?.key !== key) continue;
      changed.delete(change.id);
      changed.set(change.id, number);
    }
    return changed;
  }
}
