/**
 * Proposes a host for a container. Pure: the agent's admission decides, and a refusal comes back as
 * `rejected`, after which the container is placed again without that host.
 */
import type { ContainerId, HostKey, Region } from '../../schemas/ids.ts';
import { partitionOf } from '../../schemas/wire/subjects.ts';
import type { FleetHost, FleetView } from './turn.ts';
import { limits } from '../../schemas/limits.ts';

export interface Need {
  readonly id: ContainerId;
  readonly cpuMillis: number;
  readonly memBytes: number;
  readonly ports: number;
  /** Maximum bytes that it may write to disk. */
  readonly diskBytes: number;
}

/**
 * A host that this process has not heard may take containers if no other can: after all programs
 * start, no process has heard any host. A host that does not say how many ports are free may have
 * enough.
 */
export const fits = (host: FleetHost, need: Need): boolean =>
  host.schedulable &&
  (host.condition === 'up' || host.condition === 'unheard') &&
  host.hasEngine &&
  host.capacity !== null &&
  host.used.cpu_millis + need.cpuMillis <= host.capacity.cpu_millis &&
  host.used.mem_bytes + need.memBytes <= host.capacity.mem_bytes &&
  host.used.containers + 1 <= host.capacity.containers &&
  hasPorts(host, need);

const hasPorts = ({ freePorts }: FleetHost, { ports }: Need): boolean => freePorts === null || ports <= freePorts;

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
 * Above every pressure: a host that is heard and reports no fault comes first, however full. A disk
 * that is nearly full is a fault (`disk_pressure`).
 */
const doubtful = 10;
/**
 * Above every pressure, too: hosts whose disk could hold all that the container may write come
 * first. A limit is no reservation, so the others fit, and come before those that are doubtful.
 */
const shortOfDisk = 5;
const rank = (host: FleetHost, need: Need): number =>
  pressure(host, need) +
  (host.condition === 'up' && host.isSound ? 0 : doubtful) +
  (host.freeDiskBytes === null || need.diskBytes <= host.freeDiskBytes ? 0 : shortOfDisk);

/**
 * The emptiest host that fits, of all (or, in a large fleet, of a sample that grows until one
 * fits).
 * @returns `undefined` if none fits now.
 */
export function choose(
  fleet: FleetView,
  regions: readonly Region[],
  need: Need,
  excluded: ReadonlySet<HostKey>,
): FleetHost | undefined {
  const [first] = regions;
  // Most tenants have one region, and its list may be long.
  const keys =
    first !== undefined && regions.length === 1
      ? fleet.hostsIn(first)
      : regions.flatMap((region) => fleet.hostsIn(region));
  const isSmall = keys.length <= limits.placementAllHosts;
  const start = isSmall ? 0 : partitionOf(need.id, keys.length);
  let best: FleetHost | undefined;
  let lowest = Number.POSITIVE_INFINITY;
  for (let looked = 0; looked < keys.length; looked++) {
    if (
      !isSmall &&
      looked >= limits.placementSampleHosts &&
      (lowest < shortOfDisk || (looked >= limits.placementDoubtfulHosts && best !== undefined))
    )
      break;
    const key = keys[(start + looked) % keys.length];
    if (key === undefined || excluded.has(key)) continue;
    const host = fleet.host(key);
    if (host === undefined || !fits(host, need)) continue;
    const found = rank(host, need);
    if (best !== undefined && found >= lowest) continue;
    best = host;
    lowest = found;
  }
  return best;
}
