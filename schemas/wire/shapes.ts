/**
 * Shapes of the fields of asks and answers. Both ends are Longshore's, so a shape checks that each
 * field exists and has its type, and does not repeat the gateway's checks of patterns and lengths.
 * Unknown fields pass, because the next release may add some.
 */
import Type, { type Static, type TSchema, type TUnsafe } from 'typebox';
import { kept, metadataNames, optionalOf, shown, shownOf, type ContainerSpec } from '../api/fields/container.ts';
import type { CertificateRef, KeptCertificate, LeaseRecord, NetworkRecord, NetworkSettings } from '../api/network.ts';
import { nullable } from '../api/nullable.ts';
import { TokenScope, type PeerLink, type PeerRecord, type PeerRevocation, type PeerToken } from '../api/peer.ts';
import type { Sealed, SecretPlace } from '../records/sealed.ts';
import type { Revocation } from '../api/tenant.ts';
import { Policy } from '../api/policy.ts';
import { ContainerSecrets } from '../api/secret.ts';
import type { Declaration } from '../api/spec.ts';
import type { HostKey, NetworkName, PeerId, PeerTokenId, TenantId } from '../ids.ts';

/** The schema with the type `T`; compiles only if everything that the schema admits is a `T`. */
export const shape =
  <T>() =>
  <S extends TSchema>(schema: S & (Static<S> extends T ? unknown : never)): TUnsafe<T> =>
    Type.Unsafe<T>(schema);

/** Ids are checked where they enter the cluster, and trusted inside it. */
export const id = <T extends string>(): TUnsafe<T> => Type.Unsafe<T>(Type.String());

const text = Type.String();
const number = Type.Number();
const flag = Type.Boolean();
const texts = Type.Array(text);
const sealed = id<Sealed>();

export const ContainerSpecShape = Type.Unsafe<ContainerSpec>(Type.Object({ ...shownOf(shown), ...optionalOf(kept) }));

export const DeclarationShape = shape<Declaration>()(
  Type.Object({
    spec: ContainerSpecShape,
    policy: Policy,
    secrets: ContainerSecrets,
    desired: Type.Optional(Type.Enum(['running', 'stopped'])),
    host_key: Type.Optional(id<HostKey>()),
  }),
);

/** The next release may have more. */
export const MetadataShape = Type.Object(optionalOf(metadataNames));

export const RevocationShape = shape<Revocation>()(
  Type.Object({
    tenant: id<TenantId>(),
    match: Type.Union([
      Type.Object({ by: Type.Enum(['jti', 'sub']), value: Type.String({ maxLength: 256 }) }),
      Type.Object({ by: Type.Literal('tenant') }),
    ]),
    issuedUntilS: number,
    untilMs: number,
  }),
);

const certificateRef = { serial: text, notAfterMs: number };
const CertificateRefShape = shape<CertificateRef>()(Type.Object(certificateRef));

export const KeptCertificateShape = shape<KeptCertificate>()(
  Type.Object({ ...certificateRef, pem: text, notBeforeMs: number, privateKey: sealed }),
);

export const PeerTokenShape = shape<PeerToken>()(
  Type.Object({ id: id<PeerTokenId>(), scope: TokenScope, hash: text, insertedAtMs: number, expiresAtMs: number }),
);

const PeerLinkShape = shape<PeerLink>()(
  Type.Object({
    ...{ id: id<PeerTokenId>(), hash: text, publicKey: text, insertedAtMs: number, expiresAtMs: number },
    redeemed: Type.Optional(Type.Object({ tokenHash: text, atMs: number })),
  }),
);

export const peerKeys = {
  wireguard: Type.Object({ publicKey: text, privateKey: sealed, presharedKey: sealed }),
  certificate: KeptCertificateShape,
};

export const PeerRevocationShape = shape<PeerRevocation>()(
  Type.Object({
    ...certificateRef,
    atMs: number,
    reason: Type.Enum(['keyCompromise', 'superseded', 'cessationOfOperation']),
    toldIn: Type.Optional(number),
  }),
);

/** The gateway's part of a new peer; the peer's actor adds the rest. */
export const madePeer = {
  ...peerKeys,
  name: text,
  network: id<NetworkName>(),
  index: number,
  ipv4: text,
  ipv6: nullable(text),
  expiresAtMs: nullable(number),
  routes: nullable(Type.Unsafe<readonly string[]>(texts)),
  dns: nullable(Type.Unsafe<readonly string[]>(texts)),
  localId: text,
  p12Password: sealed,
  tokens: Type.Unsafe<readonly PeerToken[]>(Type.Array(PeerTokenShape)),
};

export const PeerRecordShape = shape<PeerRecord>()(
  Type.Object({
    ...madePeer,
    kind: Type.Literal('peer'),
    id: id<PeerId>(),
    tenant: id<TenantId>(),
    enabled: flag,
    renewed: Type.Array(CertificateRefShape),
    revoked: Type.Array(PeerRevocationShape),
    rotatedAtMs: Type.Optional(Type.Array(number)),
    links: Type.Optional(Type.Array(PeerLinkShape)),
    generation: number,
    told: number,
    toldIn: Type.Optional(number),
    problem: Type.Optional(Type.Enum(['address', 'keys', 'network'])),
    filesChangedAtMs: Type.Optional(number),
    insertedAtMs: number,
    updatedAtMs: number,
  }),
);

/** A peer as a VPN server knows it. */
export const peerOnServer = {
  generation: number,
  enabled: flag,
  expiresAtMs: nullable(number),
  wireguardPublicKey: text,
  presharedKey: sealed,
  localId: text,
  certificates: Type.Unsafe<readonly CertificateRef[]>(Type.Array(CertificateRefShape)),
};

export const NetworkSettingsShape = shape<NetworkSettings>()(
  Type.Object({
    endpoint: text,
    wireguard_port: number,
    ipv4_pool: text,
    ipv6_pool: nullable(text),
    routes: texts,
    dns: texts,
    mtu: nullable(number),
    proxy: nullable(
      Type.Object({
        type: Type.Enum(['PROXY', 'HTTPS', 'SOCKS5']),
        host: text,
        port: number,
        domains: texts,
        exclude: texts,
        direct_fallback: flag,
      }),
    ),
    tenant_network: Type.Optional(flag),
    tenants: nullable(Type.Array(id<TenantId>())),
  }),
);

/** The gateway's part of a new network; the network's actor adds the rest. */
export const madeNetwork = {
  settings: NetworkSettingsShape,
  wireguard: Type.Object({ publicKey: text, privateKey: sealed }),
  ca: KeptCertificateShape,
  server: KeptCertificateShape,
  nameConstraints: Type.Optional(Type.Literal(true)),
};

export const NetworkRecordShape = shape<NetworkRecord>()(
  Type.Object({
    ...madeNetwork,
    kind: Type.Literal('network'),
    name: id<NetworkName>(),
    host: Type.Optional(id<HostKey>()),
    filesChangedAtMs: Type.Optional(number),
    insertedAtMs: number,
    updatedAtMs: number,
  }),
);

export const LeaseRecordShape = shape<LeaseRecord>()(
  Type.Object({
    kind: Type.Literal('lease'),
    network: id<NetworkName>(),
    index: number,
    tenant: id<TenantId>(),
    peer: id<PeerId>(),
    state: Type.Union([
      Type.Object({ phase: Type.Literal('reserved'), atMs: number }),
      Type.Object({ phase: Type.Literal('held'), ...peerOnServer }),
    ]),
    confirmedIn: Type.Optional(number),
  }),
);

export const SecretPlaceShape = shape<SecretPlace>()(
  Type.Union([
    Type.Object({
      of: Type.Literal('peer'),
      tenant: id<TenantId>(),
      peer: id<PeerId>(),
      field: Type.Enum(['wireguard', 'preshared', 'certificate', 'password']),
    }),
    Type.Object({
      of: Type.Literal('network'),
      network: id<NetworkName>(),
      field: Type.Enum(['wireguard', 'ca', 'server']),
    }),
    Type.Object({ of: Type.Literal('secret'), tenant: id<TenantId>(), name: text, version: number }),
    Type.Object({ of: Type.Literal('signing_key'), id: text }),
    Type.Object({ of: Type.Literal('login'), tenant: id<TenantId>(), registry: text, version: number }),
  ]),
);
