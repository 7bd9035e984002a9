/**
 * How much a host may offer. Its agent says what it has, and a hostile one may say anything: with room for everything, all
 * placements come to it. So the operator sets a ceiling, for the platform and for single hosts. Pure.
 */
import type { Capacity, HostCeiling, HostFault, HostRecord } from '../../schemas/host.ts';

const dimensions = ['cpu_millis', 'mem_bytes', 'containers'] as const;

/** What is set for the host itself counts in place of what is set for all. */
export const ceilingOf = ({ ceiling }: { readonly ceiling?: HostCeiling }, platform: Capacity): Capacity => ({
  ...platform,
  ...ceiling,
});

export const capacityWithin = (claimed: Capacity, ceiling: Capacity): Capacity => ({
  cpu_millis: Math.min(claimed.cpu_millis, ceiling.cpu_millis),
  mem_bytes: Math.min(claimed.mem_bytes, ceiling.mem_bytes),
  containers: Math.min(claimed.containers, ceiling.containers),
});

const over = (
  { capacity, ceiling }: Pick<HostRecord, 'capacity' | 'ceiling'>,
  platform: Capacity,
  used: Capacity | undefined,
  dimension: (typeof dimensions)[number],
): boolean =>
  ceiling?.[dimension] === undefined &&
  Math.max(capacity?.[dimension] ?? 0, used?.[dimension] ?? 0) > platform[dimension];

export const isOverCeiling = (
  host: Pick<HostRecord, 'capacity' | 'ceiling'>,
  platform: Capacity,
  used: Capacity | undefined,
): boolean => dimensions.some((dimension) => over(host, platform, used, dimension));

/**
 * A host that offers, or uses, more than the platform believes of any host. Not where the operator has set a ceiling for this
 * host in that dimension: to offer less than a machine has is the purpose of that.
 */
export function faultsOfCeiling(
  host: Pick<HostRecord, 'capacity' | 'ceiling'>,
  platform: Capacity,
  used: Capacity | undefined,
): HostFault[] {
  const exceeded = dimensions.filter((dimension) => over(host, platform, used, dimension));
  if (exceeded.length === 0) return [];
  const names = exceeded.map((dimension) => `${dimension} (at most ${platform[dimension]})`).join(', ');
  return [
    {
      kind: 'over_ceiling',
      message:
        `the agent says more than HOST_MAX_* of the actors allows: ${names}. The ceiling counts. If the machine is so large, ` +
        'set max_cpu_millis, max_mem_bytes or max_containers of this host; if not, do not trust it',
    },
  ];
}
