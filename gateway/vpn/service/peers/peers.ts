/**
 * Creates peers and replaces their keys. Each takes a few asks to actors of two partitions; a crash
 * in between leaves at most a reservation, which lapses (docs/adr/0007-vpn-peers.md).
 */
import { limits } from '../../../../schemas/limits.ts';
import { addressAt, loopOf, parseCidr } from '../../../../schemas/cidr.ts';
import type { NetworkName, PeerId, PeerTokenId, TenantId } from '../../../../schemas/ids.ts';
import { servesTenant } from '../../../../schemas/api/network.ts';
import type { NetworkRecord, Reservation } from '../../../../schemas/api/network.ts';
import type { Sealed } from '../../../../schemas/records/sealed.ts';
import { peerStateOf } from '../../../../schemas/api/peer.ts';
import type { PeerLink, PeerRecord, PeerToken, TokenScope } from '../../../../schemas/api/peer.ts';
import type { Clock } from '../../../../lib/time/clock.ts';
import type { Outcome } from '../../../../lib/rpc/partition-client.ts';
import { succeeded } from '../../../call.ts';
import { newToken } from '../../../auth/random-tokens.ts';
import { newPassword } from '../../pki/secrets.ts';
import { domainOfPeers } from '../../pki/x509.ts';
import { conflict, invalid } from '../../../http/respond.ts';
import { forms } from '../../../../lib/validation/words.ts';
import type { PeerSettings } from '../../../validation/peer.ts';
import { isIpv4 } from '../../../validation/vpn-lists.ts';
import { bodyOf, type Asker, type VpnActors } from '../actors.ts';
import type { Keyring } from '../keyring.ts';
import type { Material, Materials, PeerAccess } from '../materials.ts';
import { Refusal } from '../refusal.ts';
import { PeerKeyMaker } from './keys.ts';
import { placeOf, type PeerOwner } from './owner.ts';
import { TenantTurns } from './turns.ts';
import type { AnswerOf } from '../../../../schemas/wire/asks.ts';
import { decodeAnswer } from '../../../../lib/rpc/decode.ts';

export interface PeerMakerOptions {
  readonly actors: VpnActors;
  readonly materials: Materials;
  readonly clock: Clock;
  /** URL at which phones reach this API, without a slash at the end. */
  readonly publicUrl: () => string;
  readonly defaultNetwork: NetworkName;
  readonly newPeerId: () => PeerId;
  readonly newTokenId: () => PeerTokenId;
  /** The number of a tenant's partition, which tokens contain. */
  readonly partitionOf: (tenant: TenantId) => number;
}

export interface NewPeer {
  readonly view: AnswerOf<'peer.create'>['data'];
  /** The owner's answer. */
  readonly of: Outcome;
  readonly p12Password: string;
  readonly pacToken: string;
  readonly downloadToken: string;
}

type NewLink = Omit<PeerLink, 'publicKey' | 'redeemed'>;

/** RFC 9525 defines names of services only, so peers get names in a domain of our own. */
const localIdOf = (peer: PeerId, network: NetworkName): string => `${peer}.${domainOfPeers(network)}`;

const addressesOf = ({ settings }: NetworkRecord, index: number): Pick<PeerRecord, 'ipv4' | 'ipv6'> => {
  const pool = (text: string) => {
    const cidr = parseCidr(text);
    if (cidr === undefined) throw new Error(`${text} is not a CIDR pool`);
    return addressAt(cidr, index);
  };
  return { ipv4: pool(settings.ipv4_pool), ipv6: settings.ipv6_pool === null ? null : pool(settings.ipv6_pool) };
};

/** The fields of an answer that are shown once. */
export const secretFields = ({ p12Password, pacToken, downloadToken }: Omit<NewPeer, 'view' | 'of'>) => ({
  p12_password: p12Password,
  pac_token: pacToken,
  download_token: downloadToken,
});

const keptFor = (asker: Asker, { peer }: PeerOwner, shown: Omit<NewPeer, 'view' | 'of'>): Asker =>
  asker.keep?.(peer, secretFields(shown)) ?? asker;

/** The network does not exist, or does not serve this tenant. */
const unknownNetwork = invalid({ network: ['is not a network that you may use'] });

const unsettled: ReadonlySet<string> = new Set(['timeout', 'unavailable', 'internal']);

/** The create may have been executed, or may be later; its reservation is then left to lapse. */
const mayHaveHappened = (error: unknown): boolean => error instanceof Refusal && unsettled.has(error.result.code);

/**
 * @param before the routes that the peer has, and keeps: an older release may have taken them
 * @throws Refusal if the peer has no address of a family of its own routes, or a route has the
 *   endpoint in it
 */
export function refuseUnroutable(
  routes: readonly string[] | null,
  { settings }: NetworkRecord,
  before: readonly string[] | null = null,
): void {
  if (routes === null) return;
  if (settings.ipv6_pool === null && !routes.some(isIpv4))
    throw new Refusal(invalid({ routes: [forms.routesOfPeers] }));
  const loop = loopOf(settings.endpoint, routes);
  if (loop !== undefined && before?.includes(loop) !== true)
    throw new Refusal(invalid({ routes: [forms.loop(loop, settings.endpoint)] }));
}

export class PeerMaker {
  readonly #options: PeerMakerOptions;
  readonly #turns: TenantTurns;
  readonly #keys: PeerKeyMaker;

  constructor(options: PeerMakerOptions) {
    this.#options = options;
    this.#turns = new TenantTurns(options.clock);
    this.#keys = new PeerKeyMaker(options);
  }

  /** @throws Refusal, PoolBusy */
  create(asker: Asker, tenant: TenantId, settings: PeerSettings, keyring: Keyring): Promise<NewPeer> {
    return this.#turns.run(tenant, asker.deadlineMs, () => this.#create(asker, tenant, settings, keyring));
  }

  async #create(asker: Asker, tenant: TenantId, settings: PeerSettings, keyring: Keyring): Promise<NewPeer> {
    const { actors, newPeerId, defaultNetwork } = this.#options;
    const name = settings.network ?? defaultNetwork;
    await this.#check(asker, tenant, settings.name, name);
    const owner: PeerOwner = { tenant, peer: newPeerId() };
    const { network, index } = await this.#reserve(asker, name, owner);
    try {
      refuseUnroutable(settings.routes, network);
      const localId = localIdOf(owner.peer, name);
      const { expiresAtMs } = settings;
      const keys = await this.#keys.make(asker, owner, { localId, network, expiresAtMs }, keyring);
      const { shown, stored } = this.#newSecrets(owner, keyring);
      const outcome = await actors.askWrite(keptFor(asker, owner, shown), {
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
      return { view: bodyOf('peer.create', outcome).data, of: outcome, ...shown };
    } catch (error) {
      if (!mayHaveHappened(error)) void actors.askWrite(asker, { type: 'network.release', network: name, by: owner });
      throw error;
    }
  }

  /**
   * Replaces the keys, the certificate, the password and the tokens. Only this answer shows them: a
   * tenant that loses it rotates again. @throws Refusal
   */
  async rotate(asker: Asker, { peer, network }: Material, keyring: Keyring): Promise<NewPeer> {
    // No certificate outlives its peer.
    if (peerStateOf(peer, this.#options.clock.nowMs()) === 'expired') {
      throw new Refusal(conflict('disabled', 'the peer is expired; set a later expires_at first'));
    }
    const owner: PeerOwner = { tenant: peer.tenant, peer: peer.id };
    const keys = await this.#turns.run(owner.tenant, asker.deadlineMs, () =>
      this.#keys.make(asker, owner, { ...peer, network }, keyring),
    );
    const { shown, stored } = this.#newSecrets(owner, keyring);
    const outcome = await this.#options.actors.askWrite(keptFor(asker, owner, shown), {
      type: 'peer.rotate',
      ...owner,
      replaces: peer.certificate.serial,
      keys,
      ...stored,
    });
    return { view: bodyOf('peer.rotate', outcome).data, of: outcome, ...shown };
  }

  /** @throws Refusal, as `Materials` says */
  load(asker: Asker, access: PeerAccess): Promise<Material> {
    return this.#options.materials.load(asker, access);
  }

  /**
   * Renews the certificate if little of its life is left, up to the expiry of the peer and of the
   * authority. Called on a download, because only a download brings a certificate to the device.
   */
  async fresh(asker: Asker, access: PeerAccess, material: Material, keyring: Keyring): Promise<Material> {
    const { peer, network } = material;
    const { actors } = this.#options;
    if (!this.#keys.isRenewalDue(peer, network)) return material;
    const certificate = await this.#keys.renew(asker, peer, network, keyring);
    const outcome = await actors.askWrite(asker, {
      type: 'peer.certify',
      tenant: peer.tenant,
      peer: peer.id,
      replaces: peer.certificate.serial,
      certificate,
    });
    // Another request renewed it first; its certificate serves as well.
    if (outcome.code === 'conflict') return this.load(asker, access);
    return { network, peer: bodyOf('peer.certify', outcome).data };
  }

  /**
   * A token's text and its stored form. `expiresAtMs` is `null` for the usual life of such tokens.
   */
  newToken(tenant: TenantId, scope: TokenScope, expiresAtMs: number | null): { text: string; token: PeerToken } {
    const { clock, partitionOf, newTokenId } = this.#options;
    const ttlMs = scope === 'download' ? limits.downloadTokenTtlMs : limits.pacTokenTtlMs;
    const insertedAtMs = clock.nowMs();
    const { text, hash } = newToken(scope, partitionOf(tenant));
    const token = { id: newTokenId(), scope, hash, insertedAtMs, expiresAtMs: expiresAtMs ?? insertedAtMs + ttlMs };
    return { text, token };
  }

  /**
   * A link's text and what is stored of it. `expiresAtMs` is `null` for the usual life of links.
   */
  newLink(tenant: TenantId, expiresAtMs: number | null): { text: string; link: NewLink } {
    const { clock, partitionOf, newTokenId } = this.#options;
    const insertedAtMs = clock.nowMs();
    const { text, hash } = newToken('link', partitionOf(tenant));
    const link = { id: newTokenId(), hash, insertedAtMs, expiresAtMs: expiresAtMs ?? insertedAtMs + limits.linkTtlMs };
    return { text, link };
  }

  sealPassword(tenant: TenantId, peer: PeerId, password: string, { vault }: Keyring): Sealed {
    return vault.seal(placeOf({ tenant, peer }, 'password'), password);
  }

  /** A password and a token of each kind, as the answer shows them and as they are stored. */
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
   * Refuses before a key is made; the turn checks again. An unknown network (422) is reported
   * before an exceeded cap (403).
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
}
