/**
 * Certificate revocation lists (RFC 5280 section 5): signed on request, from the current answer of
 * the network's actor, and cached for a few seconds, because anyone may ask. Their number is the
 * time of the actor's clock, which never goes back, so of two gateways' lists the one with the
 * higher number is newer.
 */
import { limits } from '../../../../schemas/limits.ts';
import type { NetworkName } from '../../../../schemas/ids.ts';
import type { RevocationEntry } from '../../../../schemas/api/network.ts';
import type { Clock } from '../../../../lib/time/clock.ts';
import type { Asker, VpnActors } from '../actors.ts';
import { authorityOf } from './authority.ts';
import type { Keyring } from '../keyring.ts';
import type { NetworkKeeper } from './networks.ts';
import type { RevocationLines } from '../../../../schemas/wire/answers.ts';
import { days, seconds } from '../../../../schemas/limits/units.ts';

/** Lifetime of a revocation list. */
export const crlLifetimeMs = 7 * days;
/**
 * A revocation list older than this is signed again: long before it expires, and soon after a
 * revocation.
 */
export const crlFreshMs = 2 * seconds;

interface Kept {
  readonly list: Promise<Uint8Array>;
  readonly madeAtMs: number;
}

export class RevocationLists {
  readonly #actors: VpnActors;
  readonly #networks: NetworkKeeper;
  readonly #clock: Clock;
  readonly #kept = new Map<NetworkName, Kept>();

  constructor(actors: VpnActors, networks: NetworkKeeper, clock: Clock) {
    this.#actors = actors;
    this.#networks = networks;
    this.#clock = clock;
  }

  /** The list in DER. @throws Refusal: `not_found` for a network that does not exist. */
  of(asker: Asker, network: NetworkName, keyring: Keyring): Promise<Uint8Array> {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#kept.get(network);
    if (known !== undefined && nowMs - known.madeAtMs < crlFreshMs) return known.list;
    const list = this.#sign(asker, network, keyring);
    this.#kept.set(network, { list, madeAtMs: nowMs });
    // Failures and unknown names are not cached: anyone may ask, so they could fill the cache.
    list.catch(() => {
      if (this.#kept.get(network)?.list === list) this.#kept.delete(network);
    });
    return list;
  }

  async #sign(asker: Asker, name: NetworkName, { vault, pool }: Keyring): Promise<Uint8Array> {
    const network = await this.#networks.load(asker, name);
    const entries: RevocationEntry[] = [];
    let nowMs = 0;
    for (let after: string | null = ''; after !== null;) {
      const page: RevocationLines = await this.#actors.read(asker, {
        type: 'network.revocations',
        network: name,
        after,
      });
      entries.push(...page.data);
      // The time of the first page: a later revocation may be missing here, but is on the next
      // list.
      nowMs ||= page.now_ms;
      after = page.next;
    }
    return pool.run(
      'crl',
      {
        ...authorityOf(network, vault),
        number: nowMs,
        thisUpdateMs: nowMs - limits.certificateBackdateMs,
        nextUpdateMs: nowMs + crlLifetimeMs,
        entries,
      },
      asker.deadlineMs,
    );
  }
}
