/** A VPN peer: one device of a tenant. Its files are made from its record and its network's. */
import Type, { type Static } from 'typebox';
import { NetworkName, PeerId, PeerTokenId, TenantId } from '../ids.ts';
import { limits } from '../limits.ts';
import { AddressText, CidrText, type CertificateRef, type KeptCertificate, type RevocationReason } from './network.ts';
import { nullable } from './nullable.ts';
import type { Sealed } from '../records/sealed.ts';

/**
 * A display name for the device. gateway/validation/peer.ts refuses control and format characters
 * and lone surrogates.
 */
export const PeerName = Type.String({ minLength: 1, maxLength: 64 });

const Timestamp = Type.String({ format: 'date-time' });
const Routes = Type.Array(CidrText, { minItems: 1, maxItems: limits.networkRoutes, uniqueItems: true });
const Dns = Type.Array(AddressText, { maxItems: limits.networkDns, uniqueItems: true });

export const PeerCreateBody = Type.Object(
  {
    name: PeerName,
    network: Type.Optional(nullable(NetworkName)),
    expires_at: Type.Optional(nullable(Timestamp)),
    routes: Type.Optional(nullable(Routes)),
    dns: Type.Optional(nullable(Dns)),
  },
  { additionalProperties: false },
);
export type PeerCreateBody = Static<typeof PeerCreateBody>;

/** An absent field keeps its value; `null` restores the network's. */
export const PeerUpdateBody = Type.Object(
  {
    name: Type.Optional(PeerName),
    enabled: Type.Optional(Type.Boolean()),
    expires_at: Type.Optional(nullable(Timestamp)),
    routes: Type.Optional(nullable(Routes)),
    dns: Type.Optional(nullable(Dns)),
  },
  { additionalProperties: false },
);
export type PeerUpdateBody = Static<typeof PeerUpdateBody>;

/** `download` opens the four files of this peer, `pac` only its proxy auto-config. */
export const TokenScope = Type.Enum(['download', 'pac']);
export type TokenScope = Static<typeof TokenScope>;

export const PeerTokenBody = Type.Object(
  { scope: TokenScope, expires_at: Type.Optional(nullable(Timestamp)) },
  { additionalProperties: false },
);
export type PeerTokenBody = Static<typeof PeerTokenBody>;

export const peerStates = ['active', 'disabled', 'expired'] as const;
export type PeerState = (typeof peerStates)[number];

export const PeerTokenView = Type.Object(
  { id: PeerTokenId, scope: TokenScope, inserted_at: Type.String(), expires_at: Type.String() },
  { additionalProperties: false },
);
export type PeerTokenView = Static<typeof PeerTokenView>;

export const PeerView = Type.Object(
  {
    id: PeerId,
    tenant_id: TenantId,
    name: PeerName,
    network: NetworkName,
    state: Type.Enum([...peerStates]),
    enabled: Type.Boolean(),
    expires_at: nullable(Type.String()),
    ipv4: Type.String(),
    ipv6: nullable(Type.String()),
    routes: nullable(Type.Array(Type.String())),
    dns: nullable(Type.Array(Type.String())),
    public_key: Type.String(),
    certificate: Type.Object({ serial: Type.String(), not_after: Type.String() }),
    tokens: Type.Array(PeerTokenView),
    last_handshake_at: nullable(
      Type.String({
        description:
          'Of WireGuard, or the last packet by IKEv2, as the host that serves the network sees it. Null if none is known.',
      }),
    ),
    rx_bytes: nullable(
      Type.Integer({ minimum: 0, description: 'Bytes from the device since its server let it in. Null if unknown.' }),
    ),
    tx_bytes: nullable(Type.Integer({ minimum: 0, description: 'Bytes to the device. Null if unknown.' })),
    endpoint: nullable(
      Type.String({
        description: 'Address and port of the device. Null if unknown, or if the token lacks the scope `vpn`.',
      }),
    ),
    files_changed_at: nullable(
      Type.String({
        description:
          'The last change of the peer or of its network that its files show: download them again if they are older. Null if the network does not answer.',
      }),
    ),
    /** Reason why the network refuses the peer, and the remedy. */
    problem: nullable(Type.String()),
    inserted_at: Type.String(),
    updated_at: Type.String(),
  },
  { additionalProperties: false },
);
export type PeerView = Static<typeof PeerView>;

/** Traffic of a peer in one hour; hours without any have no row. */
export const PeerTraffic = Type.Object(
  {
    at: Type.String({ description: 'The start of the hour.' }),
    rx_bytes: Type.Integer({ minimum: 0, description: 'Came from the device.' }),
    tx_bytes: Type.Integer({ minimum: 0, description: 'Went to the device.' }),
  },
  { additionalProperties: false },
);
export type PeerTraffic = Static<typeof PeerTraffic>;

/** With secrets that only the request that made them returns. */
export const PeerWithSecrets = Type.Object(
  {
    ...PeerView.properties,
    p12_password: Type.String(),
    pac_token: Type.String(),
    download_token: Type.String(),
  },
  { additionalProperties: false },
);
export const PeerTokenWithText = Type.Object(
  { ...PeerTokenView.properties, token: Type.String() },
  { additionalProperties: false },
);
export const P12Password = Type.Object({ p12_password: Type.String() }, { additionalProperties: false });

const Proposal = Type.Record(Type.String(), Type.Unknown());
/** Settings of IKEv2 clients, without secrets (gateway/vpn/render/profile/profile.ts). */
export const VpnProfile = Type.Object({
  version: Type.Literal(1),
  peer_id: Type.String(),
  name: Type.String(),
  expires_at: nullable(Timestamp),
  server: Type.Object({
    address: Type.String(),
    remote_id: Type.String(),
    ca: Type.Object({ pem: Type.String(), sha256: Type.String(), common_name: Type.String() }),
  }),
  client: Type.Object({
    local_id: Type.String(),
    auth: Type.Literal('certificate'),
    certificate: Type.Object({
      key_type: Type.String(),
      serial: Type.String(),
      not_after: Timestamp,
      p12_url: Type.String(),
    }),
  }),
  ike: Type.Array(Proposal),
  esp: Type.Array(Proposal),
  dns: Type.Array(Type.String()),
  search_domains: Type.Array(Type.String()),
  routes: Type.Object({ mode: Type.Enum(['full', 'split']), include: Type.Array(Type.String()) }),
  mtu: nullable(Type.Integer()),
  platforms: Type.Record(Type.String(), Type.Record(Type.String(), Type.Unknown()), {
    description: 'For each platform, the values of its settings form, and the files that it accepts in place of them.',
  }),
});

/** Only the SHA-256 (hex) of the token's text is stored. */
export interface PeerToken {
  readonly id: PeerTokenId;
  readonly scope: TokenScope;
  readonly hash: string;
  readonly insertedAtMs: number;
  readonly expiresAtMs: number;
}

/**
 * A one-time link: it is exchanged once, for a download token. Of both, only the SHA-256 (hex) is
 * stored.
 */
export interface PeerLink {
  readonly id: PeerTokenId;
  readonly hash: string;
  /**
   * WireGuard key of the peer when the link was made: a rotation ends the link, also one by a
   * release that does not know links.
   */
  readonly publicKey: string;
  readonly insertedAtMs: number;
  readonly expiresAtMs: number;
  /** Of the browser that came first. */
  readonly redeemed?: { readonly tokenHash: string; readonly atMs: number };
}

export interface PeerKeys {
  readonly wireguard: { readonly publicKey: string; readonly privateKey: Sealed; readonly presharedKey: Sealed };
  readonly certificate: KeptCertificate;
}

export interface PeerRevocation extends CertificateRef {
  readonly atMs: number;
  readonly reason: RevocationReason;
  /** The incarnation of the cluster in which the network acknowledged it; absent if it did not. */
  readonly toldIn?: number;
}

/**
 * Contradictions that a restore can cause, because it restores each partition as of a different
 * moment. `address`: another peer has the address. `keys`: a change that only the network knows
 * revoked the certificate. `network`: it does not exist.
 */
export const peerProblems = ['address', 'keys', 'network'] as const;
export type PeerProblem = (typeof peerProblems)[number];

export interface PeerRecord extends PeerKeys {
  readonly kind: 'peer';
  readonly id: PeerId;
  readonly tenant: TenantId;
  readonly name: string;
  readonly network: NetworkName;
  /** Its place in the pools of the network, and the pools at that time: pools never change. */
  readonly index: number;
  readonly ipv4: string;
  readonly ipv6: string | null;
  readonly enabled: boolean;
  readonly expiresAtMs: number | null;
  readonly routes: readonly string[] | null;
  readonly dns: readonly string[] | null;
  /** Its name in IKEv2: CN and SAN of its certificate. */
  readonly localId: string;
  readonly p12Password: Sealed;
  readonly tokens: readonly PeerToken[];
  readonly links?: readonly PeerLink[];
  /** Earlier certificates that a renewal replaced: not revoked, and not expired. */
  readonly renewed: readonly CertificateRef[];
  /**
   * Certificates that the network must refuse. Kept until they expire, because a restore may make
   * the network forget them.
   */
  readonly revoked: readonly PeerRevocation[];
  /** Times at which its keys were replaced, newest last: at least those of the last hour. */
  readonly rotatedAtMs?: readonly number[];
  /** Rises with every change that the network or a file shows. */
  readonly generation: number;
  /** The generation that the network has acknowledged. */
  readonly told: number;
  /**
   * The incarnation of the cluster in which the network acknowledged it; a restore may have undone
   * acknowledgements of earlier ones.
   */
  readonly toldIn?: number;
  /** Reason why the network refuses the peer. */
  readonly problem?: PeerProblem;
  /** The last change that a file shows; absent if the release that wrote it did not note it. */
  readonly filesChangedAtMs?: number;
  readonly insertedAtMs: number;
  readonly updatedAtMs: number;
}

/**
 * Remains of a deleted peer, so that its id is never used again: kept until the network has
 * released its address, for a day after that, and until its certificates have expired.
 */
export interface PeerTombstoneRecord {
  readonly kind: 'peer_tombstone';
  readonly id: PeerId;
  readonly tenant: TenantId;
  /** `null` if the peer never existed and never will, because its reservation lapsed. */
  readonly network: NetworkName | null;
  readonly generation: number;
  readonly told: boolean;
  /** As in a peer's record. */
  readonly toldIn?: number;
  readonly revoked: readonly PeerRevocation[];
  readonly goneAtMs: number;
}

/**
 * Answer to `token.resolve`. A token can end at any time, so later asks that depend on it name it
 * too.
 */
export interface PeerGrant {
  readonly tenant: TenantId;
  readonly peer: PeerId;
  readonly scope: TokenScope;
}

export const peerStateOf = (
  { enabled, expiresAtMs }: Pick<PeerRecord, 'enabled' | 'expiresAtMs'>,
  nowMs: number,
): PeerState => (!enabled ? 'disabled' : expiresAtMs !== null && expiresAtMs <= nowMs ? 'expired' : 'active');
