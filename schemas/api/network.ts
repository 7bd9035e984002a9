/** A VPN network: where its server is, which addresses it allocates, its certificate authority. */
import Type, { type Static } from 'typebox';
import { HostKey, NetworkName, type PeerId, TenantId } from '../ids.ts';
import { limits } from '../limits.ts';
import { nullable } from './nullable.ts';
import type { Sealed } from '../records/sealed.ts';

/** A host name (RFC 1123) or an address; gateway/validation/network.ts checks it more closely. */
export const hostPattern = '^[A-Za-z0-9.:-]+$';
export const domainPattern = '^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$';
export const cidrPattern = '^[0-9a-fA-F.:]+/[0-9]{1,3}$';
export const addressPattern = '^[0-9a-fA-F.:]+$';
const Host = Type.String({ minLength: 1, maxLength: 253, pattern: hostPattern });
const Domain = Type.String({ minLength: 1, maxLength: 253, pattern: domainPattern });
export const CidrText = Type.String({ pattern: cidrPattern, maxLength: 43 });
export const AddressText = Type.String({ pattern: addressPattern, maxLength: 39 });

/**
 * Routes of both families, even if peers have no IPv6 address: an IPv6 packet then ends in the
 * tunnel, and its program falls back to IPv4. Without the route the packet would bypass the tunnel.
 */
const wholeIpv4 = '0.0.0.0/0';
const wholeIpv6 = '::/0';
const everything = [wholeIpv4, wholeIpv6];

export const Proxy = Type.Object(
  {
    type: Type.Enum(['PROXY', 'HTTPS', 'SOCKS5'], { default: 'PROXY' }),
    host: Host,
    port: Type.Integer({ minimum: 1, maximum: 65535 }),
    domains: Type.Array(Domain, {
      maxItems: limits.proxyDomains,
      default: [],
      description: 'Domains reached through the proxy; if empty, all requests go through it.',
    }),
    exclude: Type.Array(Domain, {
      maxItems: limits.proxyDomains,
      default: [],
      description: 'Domains that clients always reach without the proxy.',
    }),
    direct_fallback: Type.Boolean({
      default: false,
      description:
        'If the proxy does not answer, clients connect directly: traffic that it should hide becomes visible.',
    }),
  },
  { additionalProperties: false },
);
export type Proxy = Static<typeof Proxy>;

const SearchDomains = Type.Array(Domain, {
  maxItems: limits.networkSearchDomains,
  uniqueItems: true,
  default: [],
  description: 'Domains in which devices look for names of one label, while the tunnel is up. They need `dns`.',
});

const TenantNetworkFlag = Type.Boolean({
  default: true,
  description:
    'If true, peers reach the containers of their tenant, by name and by address, once a host serves the network.',
});

export const NetworkSettings = Type.Object(
  {
    endpoint: Host,
    wireguard_port: Type.Integer({ minimum: 1, maximum: 65535, default: 51820 }),
    ipv4_pool: CidrText,
    ipv6_pool: nullable(CidrText),
    routes: Type.Array(CidrText, {
      minItems: 1,
      maxItems: limits.networkRoutes,
      uniqueItems: true,
      default: everything,
    }),
    dns: Type.Array(AddressText, { maxItems: limits.networkDns, uniqueItems: true, default: [] }),
    /** Absent if there are none. */
    search_domains: Type.Optional(SearchDomains),
    mtu: nullable(Type.Integer({ minimum: 1280, maximum: 1500 })),
    proxy: nullable(Proxy),
    /** True if absent. */
    tenant_network: Type.Optional(TenantNetworkFlag),
    tenants: nullable(
      Type.Array(TenantId, {
        maxItems: limits.networkTenants,
        uniqueItems: true,
        description:
          'Tenants that may have peers in this network. Null allows every tenant. Other tenants do not see the network.',
      }),
    ),
  },
  { additionalProperties: false },
);
export type NetworkSettings = Static<typeof NetworkSettings>;

/**
 * The VPN server refuses peers of tenants that are not listed, and the gateway refuses their files.
 */
export const servesTenant = ({ tenants }: Pick<NetworkSettings, 'tenants'>, tenant: TenantId): boolean =>
  tenants === null || tenants.includes(tenant);

/** `true` if these routes lead to the internet. A serving host lets out IPv4 alone. */
export const leadsOut = (routes: readonly string[]): boolean => routes.includes(wholeIpv4);

/** As CIDR, that of IPv4 first. */
export const poolsOf = ({ ipv4_pool, ipv6_pool }: Pick<NetworkSettings, 'ipv4_pool' | 'ipv6_pool'>): string[] =>
  ipv6_pool === null ? [ipv4_pool] : [ipv4_pool, ipv6_pool];

/** A field with a default may be absent or null in a body. */
const orDefault = <T extends Type.TSchema>(schema: T) =>
  Type.Optional(Type.Union([schema, Type.Null()], 'default' in schema ? { default: schema.default } : {}));

const { endpoint, ipv4_pool, wireguard_port, routes, dns, ipv6_pool, mtu, tenants } = NetworkSettings.properties;
const { domains, exclude, direct_fallback, type, ...proxyRequired } = Proxy.properties;
export const ProxyBody = Type.Object(
  {
    ...proxyRequired,
    type: orDefault(type),
    domains: orDefault(domains),
    exclude: orDefault(exclude),
    direct_fallback: orDefault(direct_fallback),
  },
  { additionalProperties: false },
);
const settable = {
  endpoint,
  ipv4_pool,
  wireguard_port: orDefault(wireguard_port),
  ipv6_pool: Type.Optional(ipv6_pool),
  routes: orDefault(routes),
  dns: orDefault(dns),
  search_domains: orDefault(SearchDomains),
  mtu: Type.Optional(mtu),
  proxy: Type.Optional(nullable(ProxyBody)),
  tenant_network: orDefault(TenantNetworkFlag),
  tenants: Type.Optional(tenants),
};
export const NetworkBody = Type.Object(settable, { additionalProperties: false });
export type NetworkBody = Static<typeof NetworkBody>;
const nameConstraints = Type.Boolean({
  default: false,
  description:
    'If true, the authority can certify only this endpoint and the peers. strongSwan before 5.9.14 refuses it. Cannot be changed.',
});
export const NetworkCreateBody = Type.Object(
  { name: NetworkName, ...settable, name_constraints: orDefault(nameConstraints) },
  { additionalProperties: false },
);
export type NetworkCreateBody = Static<typeof NetworkCreateBody>;

/**
 * A certificate with its key. `serial`: lower-case hex, no leading zero byte, as in the
 * certificate.
 */
export interface KeptCertificate {
  readonly pem: string;
  readonly serial: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** PKCS#8, PEM. */
  readonly privateKey: Sealed;
}

export interface NetworkRecord {
  readonly kind: 'network';
  readonly name: NetworkName;
  readonly settings: NetworkSettings;
  readonly wireguard: { readonly publicKey: string; readonly privateKey: Sealed };
  readonly ca: KeptCertificate;
  readonly server: KeptCertificate;
  /**
   * Its authority may certify only the current endpoint and the peers, so the endpoint never
   * changes.
   */
  readonly nameConstraints?: true;
  /** The host that serves it; absent if none does. */
  readonly host?: HostKey;
  /** The last change that peers' files show; absent as in a peer's record. */
  readonly filesChangedAtMs?: number;
  readonly insertedAtMs: number;
  readonly updatedAtMs: number;
}

/**
 * Facts about a peer that the VPN server needs. The peer's actor sends it, and the network keeps a
 * copy.
 */
export interface PeerOnServer {
  readonly generation: number;
  readonly enabled: boolean;
  readonly expiresAtMs: number | null;
  readonly wireguardPublicKey: string;
  /** Sealed for the peer's record, not for this one. */
  readonly presharedKey: Sealed;
  readonly localId: string;
  /** All certificates that are neither expired nor revoked, the one in use last. */
  readonly certificates: readonly CertificateRef[];
}

export interface CertificateRef {
  readonly serial: string;
  readonly notAfterMs: number;
}

/** A reason of RFC 5280, section 5.3.1. */
export type RevocationReason = 'keyCompromise' | 'superseded' | 'cessationOfOperation';

/**
 * An allocated address. A reservation becomes a lease when the peer's actor confirms its peer;
 * otherwise it lapses.
 */
export interface LeaseRecord {
  readonly kind: 'lease';
  readonly network: NetworkName;
  readonly index: number;
  readonly tenant: TenantId;
  readonly peer: PeerId;
  readonly state: { readonly phase: 'reserved'; readonly atMs: number } | ({ readonly phase: 'held' } & PeerOnServer);
  /**
   * The incarnation of the cluster in which the peer confirmed the address, or in which it was
   * reserved; absent before the first restore.
   */
  readonly confirmedIn?: number;
}

/** A refused certificate, kept until it would have expired. */
export interface RevokedRecord {
  readonly kind: 'revoked';
  readonly network: NetworkName;
  readonly serial: string;
  readonly notAfterMs: number;
  readonly atMs: number;
  readonly reason: RevocationReason;
  /** The incarnation of the cluster in which this was written; absent before the first restore. */
  readonly writtenIn?: number;
}

/**
 * A line of a certificate revocation list. `certificateHold`: the peer is disabled, and may be
 * enabled again.
 */
export interface RevocationEntry {
  readonly serial: string;
  readonly atMs: number;
  readonly reason: RevocationReason | 'certificateHold';
}

export const Certificate = Type.Object({ serial: Type.String(), not_before: Type.String(), not_after: Type.String() });

export const NetworkView = Type.Object(
  {
    name: NetworkName,
    ...NetworkSettings.properties,
    search_domains: SearchDomains,
    tenant_network: TenantNetworkFlag,
    servers: Type.Array(HostKey, { description: 'The host that serves the network; empty: a machine of yours does.' }),
    wireguard_public_key: Type.String(),
    name_constraints: nameConstraints,
    ca_certificate: Certificate,
    server_certificate: Certificate,
    addresses: Type.Object({ total: Type.Integer(), allocated: Type.Integer() }),
    inserted_at: Type.String(),
    updated_at: Type.String(),
  },
  { additionalProperties: false },
);
export type NetworkView = Static<typeof NetworkView>;

export const NetworkServersBody = Type.Object(
  {
    host_keys: Type.Array(HostKey, { minItems: 1, maxItems: 1, description: 'The one host that serves the network.' }),
  },
  { additionalProperties: false },
);
export type NetworkServersBody = Static<typeof NetworkServersBody>;
export const NetworkServersView = Type.Object({ host_keys: Type.Array(HostKey) }, { additionalProperties: false });

/** Number of VPN secrets that were sealed under the current key. */
export const Resealed = Type.Object(
  { key_id: Type.String(), resealed: Type.Integer(), remaining: Type.Integer() },
  { additionalProperties: false },
);

/**
 * Answer to `network.reserve`: an address, and what a peer's keys and files need of the network.
 */
export interface Reservation {
  readonly network: NetworkRecord;
  readonly index: number;
}
