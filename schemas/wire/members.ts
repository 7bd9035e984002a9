/**
 * Members of a tenant's network (ADR 51), as every host knows them that has containers of the
 * tenant. Owner and agent each make a digest of them from their own copy, as of a desired set
 * (set-digest.ts). Pure.
 */
import Type, { type Static } from 'typebox';
import { projectPattern } from '../api/fields/container.ts';
import { nullable } from '../api/nullable.ts';
import { ContainerId, HostKey, NetworkName, PeerId, TenantId } from '../ids.ts';
import { limits } from '../limits.ts';
import { digestOfTexts } from '../text-hash.ts';
import { WireguardKey } from './wireguard-key.ts';

const Label = Type.String({ pattern: projectPattern });

export const ContainerMember = Type.Object({
  tenant: TenantId,
  id: ContainerId,
  name: Type.String({ maxLength: limits.containerNameChars }),
  /** Its aliases are for containers of this project. */
  project: Type.Optional(Label),
  aliases: Type.Optional(Type.Array(Label, { maxItems: limits.aliases })),
  /** Absent if it has none. */
  ipv4: Type.Optional(Type.String({ format: 'ipv4' })),
  /** The host that runs it; `null` if it has none yet. */
  host: nullable(HostKey),
});
export type ContainerMember = Static<typeof ContainerMember>;

/** A VPN peer. It has no name, and is where its network is served. */
export const PeerMember = Type.Object({
  tenant: TenantId,
  id: PeerId,
  network: NetworkName,
  ipv4: Type.String({ format: 'ipv4' }),
  ipv6: nullable(Type.String({ format: 'ipv6' })),
  /** The public one, of WireGuard. */
  key: WireguardKey,
  /** Wall time at which it ends, in milliseconds since 1970; `null` if it never ends. */
  expires_at_ms: nullable(Type.Number()),
});
export type PeerMember = Static<typeof PeerMember>;

export const Member = Type.Union([ContainerMember, PeerMember]);
export type Member = Static<typeof Member>;

export const isPeer = (member: Member): member is PeerMember => 'network' in member;

/** In the order given. */
export function byTenant<T extends { readonly tenant: TenantId }>(
  members: Iterable<T>,
): ReadonlyMap<TenantId, readonly T[]> {
  const groups = new Map<TenantId, T[]>();
  for (const member of members) {
    const own = groups.get(member.tenant);
    if (own === undefined) groups.set(member.tenant, [member]);
    else own.push(member);
  }
  return groups;
}

/** @param basis that two digests must share to be compared (`basisOf`) */
export const digestOfMembers = (basis: string, members: Iterable<Member>): string =>
  digestOfTexts(basis, Array.from(members, textOfMember));

/** The part of a member that a digest covers. */
export function textOfMember(member: Member): string {
  if (isPeer(member)) {
    const { id, network, ipv4, ipv6, key, expires_at_ms } = member;
    return JSON.stringify([id, network, ipv4, ipv6, key, expires_at_ms]);
  }
  const { id, name, project, aliases = [], host, ipv4 } = member;
  return JSON.stringify([id, name, project ?? null, aliases, host, ipv4 ?? null]);
}
