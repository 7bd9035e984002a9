/** Which containers are in the network of their tenant, and where they get their addresses. Pure. */
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import type { ContainerSpec } from '../../../schemas/api/fields/container.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import { isInNetwork } from '../members.ts';
import type { PartitionView } from '../state.ts';
import type { TurnContext } from '../turn.ts';

/**
 * A version that is about to be declared, and an address, if it is in the network and the container
 * has none.
 * @param before the container until now; undefined: it is made
 */
export function joining(
  state: PartitionView,
  tenant: TenantId,
  spec: ContainerSpec,
  before: ContainerRecord | undefined,
  context: TurnContext,
): Pick<ContainerRecord, 'spec' | 'ipv4'> {
  const slice = context.tenantIpv4?.sliceOf(tenant);
  if (slice === undefined || before?.ipv4 !== undefined || !isInNetwork(spec)) return { spec };
  const ipv4 = state.nextIpv4(slice, context.nowMs);
  return { spec, ...(ipv4 === undefined ? {} : { ipv4 }) };
}
