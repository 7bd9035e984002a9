/**
 * A peer's keys and certificate: worker threads make them; the gateway seals the keys before it
 * sends them.
 */
import { limits } from '../../../../schemas/limits.ts';
import type { NetworkRecord } from '../../../../schemas/api/network.ts';
import type { PeerKeys, PeerRecord } from '../../../../schemas/api/peer.ts';
import type { Clock } from '../../../../lib/time/clock.ts';
import type { Asker } from '../actors.ts';
import type { Keyring } from '../keyring.ts';
import { authorityOf, crlUrl } from '../networks/authority.ts';
import { isRenewalDue } from '../renewal.ts';
import { placeOf, type PeerOwner } from './owner.ts';

/** The content of a peer's certificate. */
export interface Certified {
  readonly localId: string;
  readonly network: NetworkRecord;
  /** `null` for the longest life of a certificate. */
  readonly expiresAtMs: number | null;
}

export interface PeerKeyMakerOptions {
  readonly clock: Clock;
  readonly publicUrl: () => string;
}

export class PeerKeyMaker {
  readonly #options: PeerKeyMakerOptions;

  constructor(options: PeerKeyMakerOptions) {
    this.#options = options;
  }

  /** @throws PoolBusy, SealError */
  async make(asker: Asker, owner: PeerOwner, certified: Certified, { vault, pool }: Keyring): Promise<PeerKeys> {
    const { localId, network, expiresAtMs } = certified;
    const made = await pool.run(
      'peer',
      { localId, ...this.#signing(network, vault), ...this.#lifetime(network, expiresAtMs) },
      asker.deadlineMs,
    );
    return {
      wireguard: {
        publicKey: made.wireguard.publicKey,
        privateKey: vault.seal(placeOf(owner, 'wireguard'), made.wireguard.privateKey),
        presharedKey: vault.seal(placeOf(owner, 'preshared'), made.presharedKey),
      },
      certificate: { ...made.certificate, privateKey: vault.seal(placeOf(owner, 'certificate'), made.privateKeyPem) },
    };
  }

  isRenewalDue(peer: PeerRecord, network: NetworkRecord): boolean {
    return isRenewalDue(peer.certificate, this.#notAfterMs(network, peer.expiresAtMs), this.#options.clock.nowMs());
  }

  /** A new certificate for the peer's existing key. @throws PoolBusy, SealError */
  async renew(
    asker: Asker,
    peer: PeerRecord,
    network: NetworkRecord,
    { vault, pool }: Keyring,
  ): Promise<PeerRecord['certificate']> {
    const { privateKey } = peer.certificate;
    const made = await pool.run(
      'client',
      {
        localId: peer.localId,
        ...this.#signing(network, vault),
        privateKeyPem: vault.open(placeOf({ tenant: peer.tenant, peer: peer.id }, 'certificate'), privateKey),
        ...this.#lifetime(network, peer.expiresAtMs),
      },
      asker.deadlineMs,
    );
    return { ...made.certificate, privateKey };
  }

  #signing(network: NetworkRecord, vault: Keyring['vault']) {
    return { crlUrl: crlUrl(this.#options.publicUrl(), network.name), ...authorityOf(network, vault) };
  }

  #lifetime(network: NetworkRecord, expiresAtMs: number | null) {
    return {
      notBeforeMs: this.#options.clock.nowMs() - limits.certificateBackdateMs,
      notAfterMs: this.#notAfterMs(network, expiresAtMs),
    };
  }

  #notAfterMs({ ca }: NetworkRecord, expiresAtMs: number | null): number {
    const longest = this.#options.clock.nowMs() + limits.certificateLifetimeMs;
    return Math.min(longest, ca.notAfterMs, expiresAtMs ?? Infinity);
  }
}
