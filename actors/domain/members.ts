/**
 * The members of a tenant's network: a projection of its container records, stored nowhere else.
 * Pure.
 */
import type { ContainerRecord } from '../../schemas/api/container.ts';
import type { ContainerSpec } from '../../schemas/api/fields/container.ts';
import { usualNetwork } from '../../schemas/api/fields/network-part.ts';
import type { HostKey, TenantId } from '../../schemas/ids.ts';
import { hasLabelBefore, labelOf } from '../../schemas/tenant-network.ts';
import { digestOfMembers, type Member } from '../../schemas/wire/members.ts';
import { basisOf } from '../../schemas/wire/set-digest.ts';

/** A version that is to be in the network, and is not left out. */
export const isInNetwork = ({ network = usualNetwork, leftOut }: ContainerSpec): boolean =>
  network.mode === 'tenant' && leftOut === undefined;

/** While it is being updated either version may run: in the network if one of them is. */
export const isMember = ({ desired, spec, update }: ContainerRecord): boolean =>
  desired !== 'removed' && (isInNetwork(spec) || (update?.previous !== undefined && isInNetwork(update.previous.spec)));

/** Undefined: it is none. */
export function memberOf(record: ContainerRecord): Member | undefined {
  if (!isMember(record)) return undefined;
  const { tenant, id, spec, placement, ipv4 } = record;
  const { name, project, aliases = [] } = spec;
  return {
    tenant,
    id,
    name,
    ...(project === undefined || project === null ? {} : { project }),
    ...(aliases.length === 0 ? {} : { aliases: [...aliases] }),
    ...(typeof ipv4 === 'string' ? { ipv4 } : {}),
    host: placement.phase === 'placed' ? placement.host : null,
  };
}

/** Whether another member comes of another record of the same container. */
export function isOtherMember(before: ContainerRecord | undefined, after: ContainerRecord | undefined): boolean {
  // Most changes are of the status alone.
  if (
    before?.spec === after?.spec &&
    before?.placement === after?.placement &&
    before?.desired === after?.desired &&
    before?.update?.previous === after?.update?.previous
  )
    return false;
  const [one, other] = [before && memberOf(before), after && memberOf(after)];
  return JSON.stringify(one) !== JSON.stringify(other);
}

export function* membersOf(records: Iterable<ContainerRecord>): Generator<Member, void, void> {
  for (const record of records) {
    const member = memberOf(record);
    if (member !== undefined) yield member;
  }
}

export function tenantsOf(records: Iterable<ContainerRecord>): ReadonlySet<TenantId> {
  const tenants = new Set<TenantId>();
  for (const { tenant } of records) tenants.add(tenant);
  return tenants;
}

/** Of all members of a tenant. */
export interface MemberSummary {
  /** Raised by every change of them; with the epoch it orders what hosts hear of them. */
  readonly revision: number;
  readonly digest: string;
  /** Where they are. */
  readonly hosts: ReadonlySet<HostKey>;
}

export function summaryOf(revision: number, incarnation: number, records: Iterable<ContainerRecord>): MemberSummary {
  const members = [...membersOf(records)];
  const hosts = new Set(members.flatMap(({ host }) => (host === null ? [] : [host])));
  return { revision, digest: digestOfMembers(basisOf(incarnation), members), hosts };
}

export interface NameOfMember {
  readonly name: string;
  readonly kind: 'alias' | 'name';
  readonly member: Member;
}

/** All names that lead to members, as the resolvers of their hosts have them (zones.ts). */
export function* namesOf(members: Iterable<Member>): Generator<NameOfMember, void, void> {
  const holders = new Map<string, Member>();
  for (const member of members) {
    if (member.project !== undefined) for (const name of member.aliases ?? []) yield { name, kind: 'alias', member };
    const label = labelOf(member.name);
    if (label === undefined) continue;
    const other = holders.get(label);
    if (other === undefined || hasLabelBefore(member, other)) holders.set(label, member);
  }
  for (const [name, member] of holders) yield { name, kind: 'name', member };
}
