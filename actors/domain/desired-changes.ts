/**
 * The latest changes of what is desired on the hosts of a partition, in memory alone. An owner that
 * has just loaded the partition knows none. Pure.
 */
import type { ContainerId, HostKey } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';

interface Change {
  readonly host: HostKey;
  readonly id: ContainerId;
}

export class DesiredChanges {
  /** A ring: the change of revision `r` stands at `r mod` its length. */
  readonly #ring: Change[] = [];
  readonly #first: number;
  #last: number;

  /** @param revision before the first change */
  constructor(revision: number) {
    this.#first = this.#last = revision;
  }

  /**
   * Counts each change: of two in one commit, a sync between them has seen the first alone.
   * @returns the revision that the change makes
   */
  add(host: HostKey, id: ContainerId): number {
    this.#ring[++this.#last % limits.syncChanges] = { host, id };
    return this.#last;
  }

  /** What changed on the host after a revision; undefined: it is older than the oldest change. */
  since(host: HostKey, revision: number): ReadonlySet<ContainerId> | undefined {
    const oldest = Math.max(this.#first, this.#last - limits.syncChanges);
    if (revision < oldest || revision > this.#last) return undefined;
    const changed = new Set<ContainerId>();
    for (let number = revision + 1; number <= this.#last; number++) {
      const change = this.#ring[number % limits.syncChanges];
      if (change?.host === host) changed.add(change.id);
    }
    return changed;
  }
}
