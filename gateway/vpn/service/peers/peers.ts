/**
 * Creates peers and replaces their keys. Each is a few steps at actors in two partitions; a crash
 * in between leaves at most a reservation, which lapses (docs/adr/0007-vpn-peers.md).
 */
import { limits } from '../../../../schemas/limits.ts';
import { addressAt, parseCidr } from '../../../../schemas/cidr.ts';
import type { NetworkName, PeerId, PeerTokenId, TenantId } from '../../../../schemas/ids.ts';
import { servesTenant } from '../../../../schemas/api/network.ts';
import type { NetworkRecord, Reservation, Sealed } from '../../../../schemas/api/network.ts';
import { standingOf } from '../../../../schemas/api/peer.ts';
import type { PeerKeys, PeerRecord, PeerToken, SecretPlace, TokenScope } from '../../../../schemas/api/peer.ts';
import type { Clock } from '../../../../lib/clock.ts';
import { succeeded } from '../../../http/call.ts';
import { newPassword, newToken } from '../../pki/secrets.ts';
import { domainOfPeers } from '../../pki/x509.ts';
import { failure, invalid } from '../../../http/respond.ts';
import type { PeerSettings } from '../../../validation/peer.ts';
import { bodyOf, type Asker, type VpnActors } from '../actors.ts';
import { authorityOf, crlUrl } from '../networks/authority.ts';
import type { Keyring } from '../keyring.ts';
import { Refusal } from '../refusal.ts';
import { isRenewalDue } from '../renewal.ts';
import { TenantTurns } from './turns.ts';
import type { AnswerOf } from '../../../../schemas/wire/asks.ts';
import { decodeAnswer } from '../../../../lib/rpc/decode.ts';

export interface PeerMakerOptions {
  readonly actors: VpnActors;
  readonly clock: Clock;
  /** Where phones reach this API, without a slash at the end. */
  readonly publicUrl: () => string;
  readonly defaultNetwork: NetworkName;
  readonly newPeerId: () => PeerId;
  readonly newTokenId: () => PeerTokenId;
  /** Of a tenant's partition: a token carries it. */
  readonly partitionOf: (tenant: TenantId) => number;
}

/** A peer and its network as they are now. */
export interface Material {
  readonly peer: PeerRecord;
  readonly network: NetworkRecord;
}

export interface NewPeer {
  readonly view: AnswerOf<'peer.create'>['data'];
  readonly p12Password: string;
  readonly pacToken: string;
  readonly downloadToken: string;
}

interface PeerOwner {
  readonly tenant: TenantId;
  readonly peer: PeerId;
}

/**
 * A peer, and the token that the request has in place of a session; it must be good when the peer
 * is read.
 */
export interface PeerAccess extends PeerOwner {
  readonly tokenHash?: string;
}

const placeOf = ({ tenant, peer }: PeerOwner, field: Extract<SecretPlace, { of: 'peer' }>['field']): SecretPlace => ({
  of: 'peer',
  tenant,
  peer,
  field,
});

/** RFC 9525 has no names for peers. */
const localIdOf = (peer: PeerId, network: NetworkName): string => `${peer}.${domainOfPeers(network)}`;

const addressesOf = ({ settings }: NetworkRecord, index: number): Pick<PeerRecord, 'ipv4' | 'ipv6'> => {
  const pool = (text: string) => {
    const cidr = parseCidr(text);
    if (cidr === undefined) throw new Error(`${text} is no pool`);
    return addressAt(cidr, index);
  };
  return { ipv4: pool(settings.ipv4_pool), ipv6: settings.ipv6_pool === null ? null : pool(settings.ipv6_pool) };
};

/** There is none, or not for this tenant. */
const unknownNetwork = invalid({ network: ['is not a network'] });

const unsettled: ReadonlySet<string> = new Set(['timeout', 'unavailable', 'internal']);

/** The peer may be there all the same, or come yet: its reservation is left to lapse. */
const mayHaveHappened = (error: unknown): boolean => error instanceof Refusal && unsettled.has(error.result.code);

export class PeerMaker {
  readonly #options: PeerMakerOptions;
  readonly #turns: TenantTurns;

  constructor(options: PeerMakerOptions) {
    this.#options = options;
    this.#turns = new TenantTurns(options.clock);
  }

  /** @throws Refusal, PoolBusy */
  create(asker: Asker, tenant: TenantId, settings: PeerSettings, keyring: Keyring): Promise<NewPeer> {
    return this.#turns.run(tenant, asker.deadlineMs, () => this.#create(asker, tenant, settings, keyring));
  }

  async #create(asker: Asker, tenant: TenantId, settings: PeerSettings, { vault, pool }: Keyring): Promise<NewPeer> {
    const { actors, newPeerId, defaultNetwork } = this.#options;
    const name = settings.network ?? defaultNetwork;
    await this.#check(asker, tenant, settings.name, name);
    const owner: PeerOwner = { tenant, peer: newPeerId() };
    const { network, index } = await this.#reserve(asker, name, owner);
    try {
      const localId = localIdOf(owner.peer, name);
      const keys = await this.#newKeys(
        asker,
        owner,
        { localId, network, expiresAtMs: settings.expiresAtMs },
        { vault, pool },
      );
      const { shown, stored } = this.#newSecrets(owner, { vault, pool });
      const { data: view } = await actors.write(asker, {
        type: 'peer.create',
        ...owner,
        made: {
          name: settings.name,
          network: name,
          index,
          ...addressesOf(network, index),
          expiresAtMs: settings.expiresAtMs,
          routes: settings.routes,
          dns: settings.dns,
          localId,
          ...stored,
          ...keys,
        },
      });
      return { view, ...shown };
    } catch (error) {
      if (!mayHaveHappened(error)) void actors.askWrite(asker, { type: 'network.release', network: name, by: owner });
      throw error;
    }
  }

  /**
   * New keys, certificate, password and tokens in place of those of `material`. An answer that is
   * lost is lost with the secrets in it: the tenant rotates again. @throws Refusal
   */
  async rotate(asker: Asker, { peer, network }: Material, keyring: Keyring): Promise<NewPeer> {
    // No certificate outlives its peer, so there is none to give it.
    if (standingOf(peer, this.#options.clock.nowMs()) === 'expired') {
      throw new Refusal(failure('conflict', 'the peer is expired'));
    }
    const owner: PeerOwner = { tenant: peer.tenant, peer: peer.id };
    const keys = await this.#turns.run(owner.tenant, asker.deadlineMs, () =>
      this.#newKeys(asker, owner, { ...peer, network }, keyring),
    );
    const { shown, stored } = this.#newSecrets(owner, keyring);
    const { data: view } = await this.#options.actors.write(asker, {
      type: 'peer.rotate',
      ...owner,
      replaces: peer.certificate.serial,
      keys,
      ...stored,
    });
    return { view, ...shown };
  }

  /**
   * @throws Refusal: `not_found` where the tenant has no such peer, `unauthenticated` where the
   * token has ended.
   */
  async load(asker: Asker, { tenant, peer, tokenHash }: PeerAccess): Promise<Material> {
    const { actors } = this.#options;
    const { data: record } = await actors.read(asker, {
      type: 'peer.material',
      tenant,
      peer,
      ...(tokenHash === undefined ? {} : { tokenHash }),
    });
    const { data: network } = await actors.read(asker, {
      type: 'network.material',
      network: record.network,
    });
    return { peer: record, network };
  }

  /**
   * The same with a certificate that still has a good part of its life before it, as far as the
   * peer's own expiry and the authority's allow. A download renews it: nothing else
   * could bring it to the device.
   */
  async fresh(asker: Asker, access: PeerAccess, material: Material, { vault, pool }: Keyring): Promise<Material> {
    const { peer, network } = material;
    const { actors, clock, publicUrl } = this.#options;
    if (!isRenewalDue(peer.certificate, this.#notAfterMs(network, peer.expiresAtMs), clock.nowMs())) return material;
    const place = placeOf({ tenant: peer.tenant, peer: peer.id }, 'certificate');
    const made = await pool.run(
      'client',
      {
        localId: peer.localId,
        crlUrl: crlUrl(publicUrl(), network.name),
        ...authorityOf(network, vault),
        privateKeyPem: vault.open(place, peer.certificate.privateKey),
        ...this.#lifetime(network, peer.expiresAtMs),
      },
      asker.deadlineMs,
    );
    const certificate = { ...made.certificate, privateKey: peer.certificate.privateKey };
    const outcome = await actors.askWrite(asker, {
      type: 'peer.certify',
      tenant: peer.tenant,
      peer: peer.id,
      replaces: peer.certificate.serial,
      certificate,
    });
    // Another request was first; its result serves as well.
    if (outcome.code === 'conflict') return this.load(asker, access);
    return { network, peer: bodyOf('peer.certify', outcome).data };
  }

  /** A token, and what is stored of it. Null: it lasts as long as such tokens usually do. */
  newToken(tenant: TenantId, scope: TokenScope, expiresAtMs: number | null): { text: string; token: PeerToken } {
    const { clock, partitionOf, newTokenId } = this.#options;
    const ttlMs = scope === 'download' ? limits.downloadTokenTtlMs : limits.pacTokenTtlMs;
    const insertedAtMs = clock.nowMs();
    const { text, hash } = newToken(scope, partitionOf(tenant));
    const token = { id: newTokenId(), scope, hash, insertedAtMs, expiresAtMs: expiresAtMs ?? insertedAtMs + ttlMs };
    return { text, token };
  }

  sealPassword(tenant: TenantId, peer: PeerId, password: string, { vault }: Keyring): Sealed {
    return vault.seal(placeOf({ tenant, peer }, 'password'), password);
  }

  /**
   * A password and a token of each kind: as the answer shows them this once, and as they are
   * stored.
   */
  #newSecrets(owner: PeerOwner, keyring: Keyring) {
    const p12Password = newPassword();
    const download = this.newToken(owner.tenant, 'download', null);
    const pac = this.newToken(owner.tenant, 'pac', null);
    return {
      shown: { p12Password, pacToken: pac.text, downloadToken: download.text },
      stored: {
        p12Password: this.sealPassword(owner.tenant, owner.peer, p12Password, keyring),
        tokens: [download.token, pac.token],
      },
    };
  }

  /**
   * Before a key is made for nothing; the turn looks again. A fault of the body (422) comes before
   * the cap (403).
   */
  async #check(asker: Asker, tenant: TenantId, name: string, network: NetworkName): Promise<void> {
    const { actors } = this.#options;
    const outcome = await actors.ask(asker, { type: 'peer.check', tenant, name });
    if (succeeded(outcome)) return;
    if (outcome.code === 'over_quota') {
      const known = await actors.ask(asker, { type: 'network.get', network });
      const isClosed = succeeded(known) && !servesTenant(decodeAnswer('network.get', known.body).data, tenant);
      if (known.code === 'not_found' || isClosed) throw new Refusal(unknownNetwork);
    }
    throw new Refusal(outcome);
  }

  async #reserve(asker: Asker, network: NetworkName, by: PeerOwner): Promise<Reservation> {
    const outcome = await this.#options.actors.askWrite(asker, { type: 'network.reserve', network, by });
    if (outcome.code === 'not_found') throw new Refusal(unknownNetwork);
    return bodyOf('network.reserve', outcome).data;
  }

  async #newKeys(
    asker: Asker,
    owner: PeerOwner,
    { localId, network, expiresAtMs }: { localId: string; network: NetworkRecord; expiresAtMs: number | null },
    { vault, pool }: Keyring,
  ): Promise<PeerKeys> {
    const made = await pool.run(
      'peer',
      {
        localId,
        crlUrl: crlUrl(this.#options.publicUrl(), network.name),
        ...authorityOf(network, vault),
        ...this.#lifetime(network, expiresAtMs),
      },
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
