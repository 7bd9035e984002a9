/**
 * Ends of the mesh, the WireGuard network between the hosts of a cluster (ADR 51). Each host says
 * its own in its heartbeats; others get those of the hosts that they share tenants with. Pure.
 */
import Type, { type Static } from 'typebox';
import { nullable } from '../api/nullable.ts';
import { HostKey } from '../ids.ts';
import { digestOfTexts } from '../text-hash.ts';

const end = {
  /** Public key of WireGuard: 32 bytes in base64. */
  key: Type.String({ pattern: '^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$' }),
  /** Where other hosts reach this one, over UDP. */
  address: Type.Union([Type.String({ format: 'ipv4' }), Type.String({ format: 'ipv6' })]),
  port: Type.Integer({ minimum: 1, maximum: 65_535 }),
};

export const MeshEnd = Type.Object(end);
export type MeshEnd = Static<typeof MeshEnd>;

export const HostEnd = Type.Object({ host: HostKey, ...end });
export type HostEnd = Static<typeof HostEnd>;

/** Null: the host has said that it has none. */
export const EndSaid = Type.Object({ host: HostKey, end: nullable(MeshEnd) });
export type EndSaid = Static<typeof EndSaid>;

export const digestOfEnds = (said: Iterable<EndSaid>): string => digestOfTexts('mesh', textsOf(said));

function* textsOf(said: Iterable<EndSaid>): Generator<string, void, void> {
  for (const { host, end } of said) yield end === null ? host : `${host} ${end.key} ${end.address} ${end.port}`;
}
