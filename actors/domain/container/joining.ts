/**
 * Which containers are in the network of their tenant. It is decided in the turn that makes a
 * container or another version of it, and kept in what it declares. So it costs one comparison, all
 * owners say the same, and a member that goes changes nothing about another one: by the order of
 * ids, each removal would let the next container in, whose host made it without the network. Pure.
 */
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import type { ContainerSpec } from '../../../schemas/api/fields/container.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { isInNetwork, isMember } from '../members.ts';
import type { PartitionView } from '../state.ts';
import type { TurnContext } from '../turn.ts';

/**
 * A version that is about to be declared, with whether it is a member; and an address, if it is one
 * now and has none.
 * @param before the container until now; undefined: it is made
 */
export function joining(
  state: PartitionView,
  tenant: TenantId,
  spec: ContainerSpec,
  before: ContainerRecord | undefined,
  context: TurnContext,
): Pick<ContainerRecord, 'spec' | 'ipv4'> {
  const { leftOut: _, ...given } = spec;
  if (!isInNetwork(given)) return { spec: given };
  const isIn = before !== undefined && isMember(before);
  if (!isIn && state.tenant(tenant).members >= limits.networkMembers) return { spec: { ...given, leftOut: true } };
  const slice = context.tenantIpv4?.sliceOf(tenant);
  if (slice === undefined || typeof before?.ipv4 === 'string') return { spec: given };
  return { spec: given, ipv4: state.nextIpv4(slice, context.nowMs) ?? null };
}
