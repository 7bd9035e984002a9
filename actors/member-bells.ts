/**
 * Rings the hosts of a tenant whose members have changed, once for all changes of a moment: each
 * host asks all members that it lacks at once. A ring that is lost is made good by the next sync.
 */
import type { HostKey, TenantId } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';
import { hostsOf } from './domain/members.ts';
import type { Effect } from './domain/turn.ts';
import type { Fleet } from './endpoints/fleet.ts';
import type { Partition } from './partition.ts';

type MembersEffect = Extract<Effect, { kind: 'members' }>;
/** The host whose own doorbell has rung for every change so far; `null` if there is none. */
type Rung = HostKey | null;

export class MemberBells {
  readonly #fleet: Pick<Fleet, 'server'>;
  readonly #ring: (host: HostKey, partition: number) => void;
  readonly #due = new Map<Partition, Map<TenantId, Rung>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(fleet: Pick<Fleet, 'server'>, ring: (host: HostKey, partition: number) => void) {
    this.#fleet = fleet;
    this.#ring = ring;
  }

  note(partition: Partition, { tenant, rung }: MembersEffect): void {
    const tenants = this.#due.get(partition) ?? new Map<TenantId, Rung>();
    this.#due.set(partition, tenants);
    const before = tenants.get(tenant);
    tenants.set(tenant, before === undefined || before === rung ? rung : null);
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

  #hostsOf({ view }: Partition, tenants: ReadonlyMap<TenantId, Rung>): ReadonlySet<HostKey> {
    const hosts = new Set<HostKey>();
    for (const [tenant, rung] of tenants)
      for (const host of hostsOf(view.memberSummaryOf(tenant), this.#fleet)) if (host !== rung) hosts.add(host);
    return hosts;
  }
}
