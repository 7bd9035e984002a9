/**
 * What the owner of a partition tells the other processes of its hosts. It is told from what is committed and not from
 * memory (invariant A3): a host that is removed by a commit that never happens must not lose its containers.
 */
import type { DirectoryEntry } from '../schemas/host.ts';
import type { HostKey } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';
import type { DirectoryMessage } from '../schemas/messages.ts';
import { directoryEntry } from './host/decide.ts';
import type { PartitionView } from './state.ts';

export interface DirectoryVersion {
  readonly partition: number;
  readonly epoch: number;
  /** Number of the last commit. */
  readonly revision: number;
}

/** A message that fits; a whole directory that is larger comes in parts. */
export function inMessages(message: DirectoryMessage, maxBytes: number = limits.answerPartBytes): DirectoryMessage[] {
  const parts: { entries: DirectoryEntry[]; unreadable: HostKey[] }[] = [{ entries: [], unreadable: [] }];
  let bytes = 0;
  const room = (item: unknown): { entries: DirectoryEntry[]; unreadable: HostKey[] } => {
    const size = Buffer.byteLength(JSON.stringify(item)) + 1;
    if (bytes + size > maxBytes && bytes > 0) {
      parts.push({ entries: [], unreadable: [] });
      bytes = 0;
    }
    bytes += size;
    return parts.at(-1) as (typeof parts)[number];
  };
  for (const entry of message.entries) room(entry).entries.push(entry);
  for (const key of message.unreadable) room(key).unreadable.push(key);
  return parts.length === 1 ? [message] : parts.map((of, part) => ({ ...message, ...of, part, parts: parts.length }));
}

/**
 * Puts the parts of a whole directory together. Until all are there nothing of it counts: the hosts of a part that is not
 * there yet would seem to have been removed. Of each partition only the newest that was begun is kept.
 */
export class DirectoryParts {
  readonly #begun = new Map<number, Map<number, DirectoryMessage>>();

  /** @returns what may be learnt now, if anything. */
  take(message: DirectoryMessage): DirectoryMessage | undefined {
    const { part, parts, ...whole } = message;
    if (part === undefined || parts === undefined) return message;
    let begun = this.#begun.get(message.partition);
    const [first] = begun?.values() ?? [];
    if (begun === undefined || first === undefined || !isSame(first, message)) {
      this.#begun.set(message.partition, (begun = new Map()));
    }
    begun.set(part, message);
    if (begun.size < parts) return undefined;
    this.#begun.delete(message.partition);
    const all = [...begun.values()];
    return {
      ...whole,
      entries: all.flatMap(({ entries }) => entries),
      unreadable: all.flatMap(({ unreadable }) => unreadable),
    };
  }
}

const isSame = (one: DirectoryMessage, other: DirectoryMessage): boolean =>
  one.epoch === other.epoch && one.revision === other.revision && one.parts === other.parts;

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
