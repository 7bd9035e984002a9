/**
 * The last reports of hosts about the VPN peers that they serve, in memory only. Hosts know an
 * owner by the name of its memory, and send all of it again to one that is new to a partition.
 */
import { LRUCache } from 'lru-cache';
import type { PeerId } from '../../schemas/ids.ts';
import type { PeerSeen } from '../../schemas/wire/host.ts';
import type { Partition } from '../partition.ts';

/** A few hundred bytes each; the ones that were longest unheard of are forgotten first. */
const most = 200_000;

export class PeersSeen {
  readonly #newToken: () => string;
  readonly #memories = new WeakMap<Partition, string>();
  readonly #peers = new LRUCache<PeerId, PeerSeen>({ max: most });

  constructor(newToken: () => string) {
    this.#newToken = newToken;
  }

  /** Another one for each time that this process takes the partition. */
  memoryOf(partition: Partition): string {
    const known = this.#memories.get(partition) ?? this.#newToken();
    this.#memories.set(partition, known);
    return known;
  }

  record(seen: PeerSeen): void {
    this.#peers.set(seen.id, seen);
  }

  of = (peer: PeerId): PeerSeen | undefined => this.#peers.get(peer);
}
