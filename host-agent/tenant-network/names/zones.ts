/**
 * The names that each container and VPN peer knows: those of its tenant's containers, and aliases
 * of its own project. The asker is known by the source address, which nobody can forge in the
 * router namespace. Pure.
 */
import { contains, formatAddress, hostCidr, parseAddress, parseCidr, type Cidr } from '../../../schemas/cidr.ts';
import { byTenant } from '../../../schemas/wire/members.ts';
import type { KnownNames, NamedMember } from '../../../schemas/wire/net.ts';
import { hasLabelBefore, internalDomain, labelOf } from '../../../schemas/tenant-network.ts';

/** The names that a container or a VPN peer sees. */
export interface Zone {
  /** Members with this label, which is in lower case; empty if there is none. */
  find(label: string): readonly NamedMember[];
  /** The member with this address. */
  at(address: string): NamedMember | undefined;
}

export interface Zones {
  /** `undefined` if nobody has this address here. */
  zoneOf(source: string): Zone | undefined;
  /** `true` if the address is of the tenant network, whose names no other server knows. */
  isInside(address: string): boolean;
}

/** Names of one tenant. */
interface TenantNames {
  readonly byLabel: ReadonlyMap<string, NamedMember>;
  readonly byAlias: ReadonlyMap<string, readonly NamedMember[]>;
  readonly byAddress: ReadonlyMap<string, NamedMember>;
}

export function zonesOf({ ranges, askers, members }: KnownNames): Zones {
  const cidrs = [ranges.ipv4, ranges.ipv6].flatMap((text) => (text === null ? [] : (parseCidr(text) ?? [])));
  const tenants = new Map<string, TenantNames>();
  for (const [tenant, own] of byTenant(members)) tenants.set(tenant, namesOf(own));
  const zones = new Map<string, Zone>();
  for (const { tenant, project, ipv4, ipv6 } of askers) {
    const zone = zoneFrom(tenants.get(tenant) ?? namesOf([]), project);
    for (const address of [ipv4, ipv6]) if (address !== null) zones.set(address, zone);
  }
  return {
    zoneOf: (source) => zones.get(source) ?? zones.get(asWeWrite(source)),
    isInside: (address) => {
      const host = hostCidr(address);
      return host !== undefined && cidrs.some((cidr: Cidr) => contains(cidr, host));
    },
  };
}

function zoneFrom({ byLabel, byAlias, byAddress }: TenantNames, project: string | null): Zone {
  return {
    find: (label) => {
      const aliased = project === null ? undefined : byAlias.get(`${project} ${label}`);
      if (aliased !== undefined) return aliased;
      const named = byLabel.get(label);
      return named === undefined ? [] : [named];
    },
    at: (address) => byAddress.get(asWeWrite(address)),
  };
}

function namesOf(members: readonly NamedMember[]): TenantNames {
  const byLabel = new Map<string, NamedMember>();
  const byAlias = new Map<string, NamedMember[]>();
  const byAddress = new Map<string, NamedMember>();
  for (const member of members) {
    const label = labelOf(member.name);
    const other = label === undefined ? undefined : byLabel.get(label);
    if (label !== undefined && (other === undefined || hasLabelBefore(member, other))) byLabel.set(label, member);
    for (const alias of member.aliases ?? []) {
      const key = `${member.project ?? ''} ${alias}`;
      const others = byAlias.get(key);
      if (others === undefined) byAlias.set(key, [member]);
      else others.push(member);
    }
    for (const address of [member.ipv4, member.ipv6]) if (address !== null) byAddress.set(address, member);
  }
  return { byLabel, byAlias, byAddress };
}

/** Addresses of members and of askers are in this form already. */
function asWeWrite(text: string): string {
  const address = parseAddress(text);
  return address === undefined ? text : formatAddress(address.family, address.value);
}

/**
 * The label that a name asks for: `web` for `web` and `web.internal`; `undefined` if it is for
 * other servers. Empty for the domain itself. A name below a label, such as `a.web.internal`,
 * belongs to nobody.
 * @param name without the last dot, in lower case
 */
export function labelAsked(name: string): string | undefined {
  // The root is not a name of the tenant network.
  if (name === '') return undefined;
  if (name === internalDomain) return '';
  if (!name.includes('.')) return name;
  return name.endsWith(`.${internalDomain}`) ? name.slice(0, -internalDomain.length - 1) : undefined;
}

/** The address in a name below `in-addr.arpa` or `ip6.arpa` (RFC 1035, RFC 3596). */
export function addressAsked(name: string): string | undefined {
  if (name.endsWith('.in-addr.arpa')) {
    const address = name.slice(0, -'.in-addr.arpa'.length).split('.').toReversed().join('.');
    return parseAddress(address) === undefined ? undefined : address;
  }
  if (!name.endsWith('.ip6.arpa')) return undefined;
  const digits = name.slice(0, -'.ip6.arpa'.length).split('.').toReversed();
  if (digits.length !== 32 || !digits.every((digit) => /^[0-9a-f]$/.test(digit))) return undefined;
  return Array.from({ length: 8 }, (_, group) => digits.slice(4 * group, 4 * group + 4).join('')).join(':');
}
