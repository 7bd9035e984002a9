/**
 * Records of peers and networks, as their owners have them now. Each reading asks the owner: only
 * the owner knows whether a token, a peer or a network has ended. A copy of what was read last
 * spares only the record's way: the owner answers that the copy is current, or sends the record.
 * Secrets in the copies are sealed.
 */
import { LRUCache } from 'lru-cache';
import type { Outcome } from '../../../lib/rpc/partition-client.ts';
import type { NetworkName } from '../../../schemas/ids.ts';
import { MiB } from '../../../schemas/limits/units.ts';
import type { NetworkRecord } from '../../../schemas/api/network.ts';
import type { PeerRecord } from '../../../schemas/api/peer.ts';
import { bodyOf, type Asker, type VpnActors } from './actors.ts';
import type { PeerOwner } from './peers/owner.ts';

/** Copies of the records of peers, and again of networks. */
const materialCacheBytes = 32 * MiB;
const materialCacheEntries = 20_000;

/** A peer and its network as they are now. */
export interface Material {
  readonly peer: PeerRecord;
  readonly network: NetworkRecord;
}

/**
 * A peer, and the hash of the token that opens it without a session; the token must be valid when
 * the peer is read.
 */
export interface PeerAccess extends PeerOwner {
  readonly tokenHash?: string;
}

interface Copy<T> {
  readonly record: T;
  readonly version: string;
}

class Copies<T> {
  readonly #kept = new LRUCache<string, Copy<T>>({
    max: materialCacheEntries,
    maxSize: materialCacheBytes,
  });

  of(key: string): Copy<T> | undefined {
    return this.#kept.get(key);
  }

  /** @param asked the copy whose version the ask named */
  current(key: string, asked: Copy<T> | undefined, answer: { data: T | null; version: string }, bytes: number): T {
    const { data: record, version } = answer;
    if (record === null) {
      if (asked === undefined || asked.version !== version) throw new Error(`${key}: no record, and no copy of it`);
      return asked.record;
    }
    this.#kept.set(key, { record, version }, { size: bytes });
    return record;
  }
}

const knownOf = (copy: Copy<unknown> | undefined) => (copy === undefined ? {} : { known: copy.version });

export class Materials {
  readonly #actors: VpnActors;
  readonly #peers = new Copies<PeerRecord>();
  readonly #networks = new Copies<NetworkRecord>();

  constructor(actors: VpnActors) {
    this.#actors = actors;
  }

  /**
   * The owners of the peer and of the network are asked at the same time if a copy tells which
   * network it is.
   * @throws Refusal: `not_found` if the tenant has no such peer, `unauthenticated` if the token has
   * expired or was revoked.
   */
  async load(asker: Asker, access: PeerAccess): Promise<Material> {
    const { tenant, peer, tokenHash } = access;
    const key = `${tenant}/${peer}`;
    const copy = this.#peers.of(key);
    const likely = copy?.record.network;
    const network = likely === undefined ? undefined : this.#askNetwork(asker, likely);
    const outcome = await this.#actors.ask(asker, {
      type: 'peer.material',
      tenant,
      peer,
      ...knownOf(copy),
      ...(tokenHash === undefined ? {} : { tokenHash }),
    });
    const record = this.#peers.current(key, copy, bodyOf('peer.material', outcome), outcome.body.length);
    const asked =
      network !== undefined && record.network === likely ? network : this.#askNetwork(asker, record.network);
    return { peer: record, network: await asked() };
  }

  /** @throws Refusal */
  network(asker: Asker, name: NetworkName): Promise<NetworkRecord> {
    return this.#askNetwork(asker, name)();
  }

  /** Asks at once; the result waits for the answer. */
  #askNetwork(asker: Asker, name: NetworkName): () => Promise<NetworkRecord> {
    const copy = this.#networks.of(name);
    const asked: Promise<Outcome> = this.#actors.ask(asker, {
      type: 'network.material',
      network: name,
      ...knownOf(copy),
    });
    return async () => {
      const outcome = await asked;
      return this.#networks.current(name, copy, bodyOf('network.material', outcome), outcome.body.length);
    };
  }
}
