/**
 * The VPN networks for `longshore-net`: those that this host serves, and the places of the peers of
 * tenants that have containers here. Pure.
 */
import { poolsOf } from '../../schemas/api/network.ts';
import type { HostKey, NetworkName, PeerId, TenantId } from '../../schemas/ids.ts';
import type { PeerMember } from '../../schemas/wire/members.ts';
import type { NetworkServer } from '../../schemas/wire/network-server.ts';
import type { VpnNetwork } from '../../schemas/wire/net.ts';
import type { UnsealedKey } from '../../schemas/wire/unseal.ts';

/** The key of a VPN network that this host serves, or of a peer in one. */
export type VpnKeyOf =
  | {
      readonly network: NetworkName;
      /** Serial of the certificate that belongs to it now; absent: whatever it has. */
      readonly certificate?: string;
      /** Its certificate is near its end: a gateway that is asked for the key renews it. */
      readonly isRenewal?: true;
    }
  | { readonly tenant: TenantId; readonly peer: PeerId };

/** Secrets of VPN networks and peers, by the public key of WireGuard that each belongs to. */
export interface KnownSecrets {
  /** `undefined` if it is not here yet. */
  of(publicKey: string): UnsealedKey | undefined;
  /** The reason why some are lacking; `undefined` if none is, or none was refused yet. */
  readonly why: string | undefined;
  /**
   * Asks for those that are lacking, all at once, and forgets the others.
   * @param wanted the owner of each secret, by its public key
   * @param onCame is called when some have come
   */
  want(wanted: ReadonlyMap<string, VpnKeyOf>, onCame: () => void): void;
  /** Resolves when each requested one has come or was refused, or after this time. */
  tried(waitMs: number): Promise<void>;
}

export interface VpnInput {
  readonly here: HostKey;
  readonly servers: Iterable<NetworkServer>;
  readonly peers: Iterable<PeerMember>;
  /** The secret that belongs to a public key; `undefined` if it is not here yet. */
  readonly secretOf: (key: string) => UnsealedKey | undefined;
  /** Wall time. */
  readonly nowMs: number;
}

export interface VpnPicture {
  readonly networks: readonly VpnNetwork[];
  /** Secrets that this host needs to serve, by public key. */
  readonly secrets: ReadonlyMap<string, VpnKeyOf>;
  /** Wall time at which the next peer ends; `undefined` if none does. */
  readonly nextEndMs: number | undefined;
}

/** A network whose key is not here yet is not served; a peer whose key is not, does not connect. */
export function vpnOf({ here, servers, peers, secretOf, nowMs }: VpnInput): VpnPicture {
  const byNetwork = new Map<NetworkName, PeerMember[]>();
  let nextEndMs: number | undefined;
  for (const peer of peers) {
    const endMs = peer.expires_at_ms ?? Infinity;
    if (endMs <= nowMs) continue;
    if (endMs < (nextEndMs ?? Infinity)) nextEndMs = endMs;
    const others = byNetwork.get(peer.network);
    if (others === undefined) byNetwork.set(peer.network, [peer]);
    else others.push(peer);
  }
  const secrets = new Map<string, VpnKeyOf>();
  const networks = Array.from(servers, (served): VpnNetwork => {
    const { network, host, port, mtu, internet, tenants, certificate } = served;
    const isServed = host === here;
    const admitted = (byNetwork.get(network) ?? []).filter(({ tenant }) => tenants?.includes(tenant) ?? true);
    if (isServed) {
      secrets.set(served.key, { network, certificate });
      for (const { tenant, id, key } of admitted) secrets.set(key, { tenant, peer: id });
    }
    const own = isServed ? secretOf(served.key) : undefined;
    return {
      name: network,
      host,
      pools: poolsOf(served),
      ...(internet === true ? { internet } : {}),
      server: own === undefined ? null : { port, mtu, private_key: own.key, ...serverIke(own) },
      peers: admitted.map(({ tenant, key, ipv4, ipv6 }) => {
        const secret = isServed ? secretOf(key) : undefined;
        return { tenant, key, ipv4, ipv6, preshared_key: secret?.key ?? null, ...peerIke(secret) };
      }),
    };
  });
  return { networks, secrets, nextEndMs };
}

function serverIke({ ike }: UnsealedKey): Pick<NonNullable<VpnNetwork['server']>, 'ike'> {
  const { id, certificate, private_key } = ike;
  return private_key === undefined ? {} : { ike: { id, certificate, private_key } };
}

const peerIke = (secret: UnsealedKey | undefined): Pick<VpnNetwork['peers'][number], 'ike'> =>
  secret === undefined ? {} : { ike: { id: secret.ike.id, certificate: secret.ike.certificate } };
