/**
 * The host that serves a VPN network. The network's owner tells all actors processes with the host
 * directory; the owners of tenants tell the hosts of those that have peers in it. Pure.
 */
import Type, { type Static } from 'typebox';
import { CidrText } from '../api/network.ts';
import { nullable } from '../api/nullable.ts';
import { HostKey, NetworkName, TenantId } from '../ids.ts';
import { limits } from '../limits.ts';
import { WireguardKey } from './wireguard-key.ts';

export const NetworkServer = Type.Object({
  network: NetworkName,
  host: HostKey,
  /** Its public key of WireGuard. */
  key: WireguardKey,
  /** UDP port of WireGuard. */
  port: Type.Integer({ minimum: 1, maximum: 65_535 }),
  /** Of the tunnel's interface; `null` for WireGuard's own. */
  mtu: nullable(Type.Integer({ minimum: 1280, maximum: 1500 })),
  ipv4_pool: CidrText,
  ipv6_pool: nullable(CidrText),
  /** `true` if its peers reach the internet by the host. */
  internet: Type.Optional(Type.Boolean()),
  /** `null` for every tenant. Peers of others do not connect. */
  tenants: nullable(Type.Array(TenantId, { maxItems: limits.networkTenants })),
  /** Serial of its certificate for IKEv2. */
  certificate: Type.String(),
});
export type NetworkServer = Static<typeof NetworkServer>;

/** `null` if no host serves the network. */
export const ServerSaid = Type.Object({ network: NetworkName, server: nullable(NetworkServer) });
export type ServerSaid = Static<typeof ServerSaid>;
