/**
 * The hosts of a partition as its owner sends them to the other processes. They come from what is
 * committed and not from memory (invariant A3): a host must not lose its containers for a removal
 * that is never committed.
 */
import type { DirectoryEntry } from '../../schemas/api/host.ts';
import type { HostKey, NetworkName } from '../../schemas/ids.ts';
import type { DirectoryAt, DirectoryMessage } from '../../schemas/wire/directory.ts';
import type { NetworkServer } from '../../schemas/wire/network-server.ts';
import { directoryEntry } from '../domain/host/decide.ts';
import { serverOf } from '../domain/network/view.ts';
import { inParts, partText } from '../../lib/rpc/parts.ts';
import type { PartitionView } from '../domain/state.ts';
import { protocolFields } from '../../schemas/wire/version.ts';

export interface DirectoryVersion {
  readonly partition: number;
  readonly epoch: number;
  /** Number of the last commit. */
  readonly revision: number;
}

/**
 * Encodes a message; a whole directory that exceeds one message is split into parts. Each host is a
 * step.
 */
export function* messagesOf(message: DirectoryMessage, maxBytes?: number): Generator<void, string[], void> {
  const { entries, unreadable, ...head } = message;
  const all = yield* inParts({ entries, unreadable }, maxBytes);
  return all.map((lists, part) =>
    partText({ ...protocolFields, ...head, ...(all.length === 1 ? {} : { part, parts: all.length }) }, lists),
  );
}

/**
 * Puts the parts of a whole directory together. Nothing of it counts until all parts are there, or
 * the hosts of a missing part would seem to have been removed. For each partition this keeps only
 * the newest directory that has begun to arrive.
 */
export class DirectoryParts {
  readonly #begun = new Map<number, Map<number, DirectoryMessage>>();

  /** @returns the message, once it is complete */
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
  one.epoch === other.epoch &&
  one.revision === other.revision &&
  one.changes === other.changes &&
  one.parts === other.parts;

/** `true` if a process with the hosts of a partition as of `held` lacks some changes up to `at`. */
export const isBehind = (held: DirectoryAt | undefined, at: DirectoryAt): boolean =>
  held === undefined || (held[0] === at[0] ? held[1] < at[1] : held[0] < at[0]);

export class HostDirectory {
  readonly #entries = new Map<HostKey, DirectoryEntry>();
  readonly #servers = new Map<NetworkName, NetworkServer>();
  #unreadable: readonly HostKey[] = [];
  #changes = 0;

  /** The number of changes since the load. */
  get changes(): number {
    return this.#changes;
  }

  /** @param state as it was loaded, so that all of it is committed */
  load(state: PartitionView): void {
    this.#entries.clear();
    for (const record of state.hosts()) this.#entries.set(record.key, directoryEntry(record));
    this.#unreadable = [...state.damagedHosts()];
    this.#servers.clear();
    for (const { name, record } of state.vpn.networks()) {
      const server = record && serverOf(record);
      if (server !== undefined) this.#servers.set(name, server);
    }
  }

  whole(version: DirectoryVersion): DirectoryMessage {
    return {
      ...version,
      changes: this.#changes,
      full: true,
      entries: [...this.#entries.values()],
      removed: [],
      unreadable: this.#unreadable,
      servers: [...this.#servers.values()],
    };
  }

  /** Called after the commit that changed the host. */
  change(version: DirectoryVersion, host: HostKey, entry: DirectoryEntry | null): DirectoryMessage {
    const changes = ++this.#changes;
    if (entry === null) this.#entries.delete(host);
    else this.#entries.set(host, entry);
    this.#unreadable = this.#unreadable.filter((key) => key !== host);
    const entries = entry === null ? [] : [entry];
    return { ...version, changes, full: false, entries, removed: entry === null ? [host] : [], unreadable: [] };
  }

  /**
   * Called after the commit that changed the server of the network, which is seldom: all are sent.
   */
  serve(version: DirectoryVersion, network: NetworkName, server: NetworkServer | null): DirectoryMessage {
    this.#changes++;
    if (server === null) this.#servers.delete(network);
    else this.#servers.set(network, server);
    return this.whole(version);
  }
}
