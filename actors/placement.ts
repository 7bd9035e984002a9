/**
 * Which host a container should go to. A pure proposal: the agent's admission decides, and a refusal comes back as
 * `rejected`, after which the container is placed again without that host.
 */
import type { ContainerId, HostKey, Region } from '../schemas/ids.ts';
import { partitionOf } from '../schemas/subjects.ts';
import type { FleetHost, FleetView } from './turn.ts';

export interface Need {
  readonly id: ContainerId;
  readonly cpuMillis: number;
  readonly memBytes: number;
}

/** Of a fleet larger than this, so many hosts are looked at, beginning at a place that the container's id picks. */
const sampleHosts = 32;

export const fits = (host: FleetHost, need: Need): boolean =>
  host.schedulable &&
  host.standing === 'up' &&
  host.capacity !== null &&
  host.used.cpu_millis + need.cpuMillis <= host.capacity.cpu_millis &&
  host.used.mem_bytes + need.memBytes <= host.capacity.mem_bytes &&
  host.used.containers + 1 <= host.capacity.containers;

/** Share of the scarcest resource that would be in use: lower is emptier. */
const pressure = (host: FleetHost, need: Need): number =>
  host.capacity === null
    ? Number.POSITIVE_INFINITY
    : Math.max(
        (host.used.cpu_millis + need.cpuMillis) / host.capacity.cpu_millis,
        (host.used.mem_bytes + need.memBytes) / host.capacity.mem_bytes,
        (host.used.containers + 1) / host.capacity.containers,
      );

/**
 * The emptiest host that fits, of all (or, in a large fleet, of a sample that grows until one fits).
 * @returns undefined where none fits now.
 */
export function choose(
  fleet: FleetView,
  regions: readonly Region[],
  need: Need,
  excluded: ReadonlySet<HostKey>,
): FleetHost | undefined {
  const keys = regions.flatMap((region) => fleet.hostsIn(region));
  const start = keys.length > sampleHosts ? partitionOf(need.id, keys.length) : 0;
  let best: FleetHost | undefined;
  for (let looked = 0; looked < keys.length; looked++) {
    if (looked >= sampleHosts && best !== undefined) break;
    const key = keys[(start + looked) % keys.length];
    if (key === undefined || excluded.has(key)) continue;
    const host = fleet.host(key);
    if (host === undefined || !fits(host, need)) continue;
    if (best === undefined || pressure(host, need) < pressure(best, need)) best = host;
  }
  return best;
}
