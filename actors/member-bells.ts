/**
 * Rings the hosts of a tenant whose members have changed, once for all changes of a moment: each
 * host asks all members that it lacks at once. A ring that is lost is made good by the next sync.
 */
import type { HostKey, NetworkName, TenantId } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';
import { hostsOf } from './domain/members.ts';
import type { Effect } from './domain/turn.ts';
import type { Fleet } from './endpoints/fleet.ts';
import type { Partition } from './partition.ts';

type MembersEffect = Extract<Effect, { kind: 'members' }>;

/** The changes of a tenant's members that its hosts have not been rung for. */
interface Due {
  /** The host whose own doorbell has rung for each of them; `null` if there is none. */
  rung: HostKey | null;
  /** The networks of VPN peers among them. */
  readonly left: Set<NetworkName>;
}

export class MemberBells {
  readonly #fleet: Pick<Fleet, 'server'>;
  readonly #ring: (host: HostKey, partition: number) => void;
  readonly #due = new Map<Partition, Map<TenantId, Due>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(fleet: Pick<Fleet, 'server'>, ring: (host: HostKey, partition: number) => void) {
    this.#fleet = fleet;
    this.#ring = ring;
  }

  note(partition: Partition, { tenant, rung, left }: MembersEffect): void {
    const tenants = this.#due.get(partition) ?? new Map<TenantId, Due>();
    this.#due.set(partition, tenants);
    const due = tenants.get(tenant) ?? { rung, left: new Set() };
    tenants.set(tenant, due);
    if (due.rung !== rung) due.rung = null;
    if (left !== undefined) due.left.add(left);
    this.#timer ??= setTimeout(() => this.#ringAll(), limits.membersGatherMs).unref();
  }

  #ringAll(): void {
    this.#timer = undefined;
    const due = [...this.#due];
    this.#due.clear();
    try {
      for (const [partition, tenants] of due) {
        for (const host of this.#hostsOf(partition, tenants)) this.#ring(host, partition.number);
      }
    } catch {
      // The connection is closed. Hosts ask again by the clock.
    }
  }

  #hostsOf({ view }: Partition, tenants: ReadonlyMap<TenantId, Due>): ReadonlySet<HostKey> {
    const hosts = new Set<HostKey>();
    for (const [tenant, { rung, left }] of tenants) {
      const { hosts: on, networks } = view.memberSummaryOf(tenant);
      for (const host of hostsOf({ hosts: on, networks: new Set([...networks, ...left]) }, this.#fleet))
        if (host !== rung) hosts.add(host);
    }
    return hosts;
  }
}
