/**
 * Ends of the mesh, the WireGuard network between the hosts of a cluster (ADR 51). Each host says
 * its own in its heartbeats; others get those of the hosts that they share tenants with. Pure.
 */
import Type, { type Static } from 'typebox';
import { nullable } from '../api/nullable.ts';
import { HostKey } from '../ids.ts';
import { digestOfTexts } from '../text-hash.ts';
import type { ServerSaid } from './network-server.ts';
import { WireguardKey } from './wireguard-key.ts';

const end = {
  /** The public one. */
  key: WireguardKey,
  /** The address at which other hosts reach this one, over UDP. */
  address: Type.Union([Type.String({ format: 'ipv4' }), Type.String({ format: 'ipv6' })]),
  port: Type.Integer({ minimum: 1, maximum: 65_535 }),
};

export const MeshEnd = Type.Object(end);
export type MeshEnd = Static<typeof MeshEnd>;

export const HostEnd = Type.Object({ host: HostKey, ...end });
export type HostEnd = Static<typeof HostEnd>;

/** `null` if the host has reported that it has none. */
export const EndSaid = Type.Object({ host: HostKey, end: nullable(MeshEnd) });
export type EndSaid = Static<typeof EndSaid>;

/** Of the ends of the hosts that a tenant is on, and of the servers of its VPN networks. */
export const digestOfEnds = (ends: Iterable<EndSaid>, servers: Iterable<ServerSaid> = []): string =>
  digestOfTexts('mesh', textsOf(ends, servers));

function* textsOf(ends: Iterable<EndSaid>, servers: Iterable<ServerSaid>): Generator<string, void, void> {
  for (const { host, end } of ends) yield end === null ? host : `${host} ${end.key} ${end.address} ${end.port}`;
  for (const said of servers) yield JSON.stringify(said);
}
