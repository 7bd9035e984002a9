/**
 * The members of a tenant's network: a projection of its container records, stored nowhere else.
 * Pure.
 */
import { isDeepStrictEqual } from 'node:util';
import type { ContainerRecord } from '../../schemas/api/container.ts';
import type { PeerRecord } from '../../schemas/api/peer.ts';
import type { ContainerSpec } from '../../schemas/api/fields/container.ts';
import { usualNetwork } from '../../schemas/api/fields/network-part.ts';
import type { ContainerId, HostKey, NetworkName, TenantId } from '../../schemas/ids.ts';
import { TextSum } from '../../schemas/text-hash.ts';
import {
  isPeer,
  textOfMember,
  type ContainerMember,
  type Member,
  type PeerMember,
} from '../../schemas/wire/members.ts';
import { basisOf } from '../../schemas/wire/set-digest.ts';
import type { FleetView } from './turn.ts';
import type { PeersView } from './vpn-state.ts';

/** `true` for a version that is to be in the network, and is not left out. */
export const isInNetwork = ({ network = usualNetwork, leftOut }: ContainerSpec): boolean =>
  network.mode === 'tenant' && leftOut === undefined;

/** While it is being updated either version may run: in the network if one of them is. */
export const isMember = ({ desired, spec, update }: ContainerRecord): boolean =>
  desired !== 'removed' && (isInNetwork(spec) || (update?.previous !== undefined && isInNetwork(update.previous.spec)));

/** `undefined` if it is no member. */
export function memberOf(record: ContainerRecord): ContainerMember | undefined {
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

/** `undefined` if it may not connect. Its end comes by the clock of the server. */
export function peerMemberOf(record: PeerRecord): PeerMember | undefined {
  const { tenant, id, enabled, problem, network, ipv4, ipv6, wireguard, expiresAtMs } = record;
  if (!enabled || problem !== undefined) return undefined;
  return { tenant, id, network, ipv4, ipv6, key: wireguard.publicKey, expires_at_ms: expiresAtMs };
}

/** `true` if the two records of a peer make different members. */
export const isOtherPeer = (before: PeerRecord | undefined, after: PeerRecord | undefined): boolean =>
  !isDeepStrictEqual(before && peerMemberOf(before), after && peerMemberOf(after));

/** The members that come of two records of a container. */
interface MemberChange {
  readonly before: ContainerMember | undefined;
  readonly after: ContainerMember | undefined;
}

/** `undefined` if both records make the same member. */
export function memberChange(
  before: ContainerRecord | undefined,
  after: ContainerRecord | undefined,
): MemberChange | undefined {
  // Most changes are of the status alone.
  if (
    before?.spec === after?.spec &&
    before?.placement === after?.placement &&
    before?.desired === after?.desired &&
    before?.ipv4 === after?.ipv4 &&
    before?.update?.previous === after?.update?.previous
  )
    return undefined;
  const change = { before: before && memberOf(before), after: after && memberOf(after) };
  const isSame =
    change.before === undefined || change.after === undefined
      ? change.before === change.after
      : textOfMember(change.before) === textOfMember(change.after);
  return isSame ? undefined : change;
}

/** The records that the members of a tenant come from. */
interface Own {
  readonly containers: ReadonlyMap<ContainerId, ContainerRecord>;
  readonly peers: Pick<PeersView, 'records'>;
}

/** The members of a tenant: its containers and its VPN peers. */
export function* membersOf({ containers, peers }: Own): Generator<Member, void, void> {
  for (const record of containers.values()) {
    const member = memberOf(record);
    if (member !== undefined) yield member;
  }
  for (const record of peers.records.values()) {
    const member = peerMemberOf(record);
    if (member !== undefined) yield member;
  }
}

export function tenantsOf(records: Iterable<ContainerRecord>): ReadonlySet<TenantId> {
  const tenants = new Set<TenantId>();
  for (const { tenant } of records) tenants.add(tenant);
  return tenants;
}

/** The summary of all members of a tenant. */
export interface MemberSummary {
  /** Raised by every change of a member; with the epoch it orders the notices to hosts. */
  readonly revision: number;
  readonly digest: string;
  /** The hosts of its containers. */
  readonly hosts: ReadonlySet<HostKey>;
  /** The networks of its VPN peers. */
  readonly networks: ReadonlySet<NetworkName>;
}

/** A count for each item. */
class Counts<T> {
  readonly #counts = new Map<T, number>();
  add(item: T, count: 1 | -1): void {
    const sum = (this.#counts.get(item) ?? 0) + count;
    if (sum === 0) this.#counts.delete(item);
    else this.#counts.set(item, sum);
  }
  items(): ReadonlySet<T> {
    return new Set(this.#counts.keys());
  }
}

/** The summary of a tenant's members, kept as they change: each change costs itself. */
export class MemberSums {
  #revision: number;
  readonly #sum = new TextSum();
  readonly #hosts = new Counts<HostKey>();
  readonly #networks = new Counts<NetworkName>();
  #summary: MemberSummary | undefined;

  constructor(revision: number) {
    this.#revision = revision;
  }

  /** Called when one member has changed, has come or has gone. */
  change(revision: number, before: Member | undefined, after: Member | undefined): void {
    this.#revision = revision;
    this.#summary = undefined;
    if (before !== undefined) {
      this.#sum.remove(textOfMember(before));
      this.#count(before, -1);
    }
    if (after !== undefined) {
      this.#sum.add(textOfMember(after));
      this.#count(after, 1);
    }
  }

  summary(incarnation: number): MemberSummary {
    return (this.#summary ??= {
      revision: this.#revision,
      digest: this.#sum.digest(basisOf(incarnation)),
      hosts: this.#hosts.items(),
      networks: this.#networks.items(),
    });
  }

  #count(member: Member, count: 1 | -1): void {
    if (isPeer(member)) this.#networks.add(member.network, count);
    else if (member.host !== null) this.#hosts.add(member.host, count);
  }
}

/** Hosts that a tenant's members are on, and those that serve its peers. */
export function hostsOf(
  { hosts, networks }: Pick<MemberSummary, 'hosts' | 'networks'>,
  fleet: Pick<FleetView, 'server'>,
): ReadonlySet<HostKey> {
  if (networks.size === 0) return hosts;
  return new Set([...hosts, ...[...networks].flatMap((network) => fleet.server(network)?.host ?? [])]);
}
