/**
 * The ceiling of the capacity that a host may offer. Its agent reports the capacity, and a hostile
 * one may report anything: with room for everything, it would get all placements. So the operator
 * sets a ceiling, for the platform and for single hosts. Pure.
 */
import type { Capacity, HostCeiling, HostFault, HostRecord } from '../../../schemas/api/host.ts';

const dimensions = ['cpu_millis', 'mem_bytes', 'containers'] as const;

/** A host's own ceiling replaces the platform's. */
export const ceilingOf = ({ ceiling }: { readonly ceiling?: HostCeiling }, platform: Capacity): Capacity => ({
  ...platform,
  ...ceiling,
});

export const capacityWithin = (claimed: Capacity, ceiling: Capacity): Capacity => ({
  cpu_millis: Math.min(claimed.cpu_millis, ceiling.cpu_millis),
  mem_bytes: Math.min(claimed.mem_bytes, ceiling.mem_bytes),
  containers: Math.min(claimed.containers, ceiling.containers),
});

type Dimension = (typeof dimensions)[number];
type Claims = Pick<HostRecord, 'capacity'>;

const said = ({ capacity }: Claims, used: Capacity | undefined, dimension: Dimension): number =>
  Math.max(capacity?.[dimension] ?? 0, used?.[dimension] ?? 0);

const over = (
  host: Pick<HostRecord, 'capacity' | 'ceiling'>,
  platform: Capacity,
  used: Capacity | undefined,
  dimension: Dimension,
): boolean => host.ceiling?.[dimension] === undefined && said(host, used, dimension) > platform[dimension];

export const isOverCeiling = (
  host: Pick<HostRecord, 'capacity' | 'ceiling'>,
  platform: Capacity,
  used: Capacity | undefined,
): boolean => dimensions.some((dimension) => over(host, platform, used, dimension));

/**
 * The fault of a host that offers, or uses, more than the platform's ceiling. A ceiling that the
 * operator set for this host makes no fault: its purpose is to offer less than the machine has.
 */
export function faultsOfCeiling(
  host: Pick<HostRecord, 'capacity' | 'ceiling'>,
  platform: Capacity,
  used: Capacity | undefined,
): HostFault[] {
  const exceeded = dimensions.filter((dimension) => over(host, platform, used, dimension));
  if (exceeded.length === 0) return [];
  const claims = exceeded.map((name) => `${name} ${said(host, used, name)} (HOST_MAX_* allows ${platform[name]})`);
  const settings = exceeded.map((name) => `max_${name}`).join(', ');
  return [
    {
      kind: 'over_ceiling',
      message:
        `the agent claims ${claims.join(', ')}; the excess is ignored. If the machine is that large, set ${settings} of ` +
        'this host; if not, remove the host: its agent may be hostile',
    },
  ];
}
