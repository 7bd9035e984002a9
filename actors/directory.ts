/**
 * What the owner of a partition tells the other processes of its hosts. It is told from what is committed and not from
 * memory (invariant A3): a host that is removed by a commit that never happens must not lose its containers.
 */
import type { DirectoryEntry } from '../schemas/host.ts';
import type { HostKey } from '../schemas/ids.ts';
import type { DirectoryMessage } from '../schemas/messages.ts';
import { directoryEntry } from './host/decide.ts';
import type { PartitionView } from './state.ts';

export interface DirectoryVersion {
  readonly partition: number;
  readonly epoch: number;
  /** Number of the last commit. */
  readonly revision: number;
}

export class HostDirectory {
  readonly #entries = new Map<HostKey, DirectoryEntry>();
  #unreadable: readonly HostKey[] = [];

  /** The state as it was loaded: all of it is committed. */
  load(state: PartitionView): void {
    this.#entries.clear();
    for (const record of state.hosts()) this.#entries.set(record.key, directoryEntry(record));
    this.#unreadable = [...state.damagedHosts()];
  }

  whole(version: DirectoryVersion): DirectoryMessage {
    return {
      ...version,
      full: true,
      entries: [...this.#entries.values()],
      removed: [],
      unreadable: this.#unreadable,
    };
  }

  /** After the commit that changed the host. */
  change(version: DirectoryVersion, host: HostKey, entry: DirectoryEntry | null): DirectoryMessage {
    if (entry === null) this.#entries.delete(host);
    else this.#entries.set(host, entry);
    this.#unreadable = this.#unreadable.filter((key) => key !== host);
    const entries = entry === null ? [] : [entry];
    return { ...version, full: false, entries, removed: entry === null ? [host] : [], unreadable: [] };
  }
}
