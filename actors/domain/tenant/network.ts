/** The network of a tenant, as the tenant sees it. Pure. */
import type { TenantName, TenantNetwork } from '../../../schemas/api/tenant-network.ts';
import { limits } from '../../../schemas/limits.ts';
import { internalDomain, ipv6Of, ipv6RangeOf } from '../../../schemas/tenant-network.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { pageOf } from '../page.ts';
import type { PartitionView } from '../state.ts';
import { answer, data, type Turn, type TurnContext } from '../turn.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

export function network(state: PartitionView, ask: Of<'tenant.network'>, { cluster, tenantIpv4 }: TurnContext): Turn {
  const { members } = state.tenant(ask.tenant);
  const view: TenantNetwork = {
    ipv4: tenantIpv4?.range ?? null,
    ipv6: ipv6RangeOf(cluster),
    domain: internalDomain,
    members,
  };
  return answer(data('ok', view));
}

export function names(state: PartitionView, ask: Of<'tenant.names'>, { cluster }: TurnContext): Turn {
  const { containers, memberNames } = state.tenant(ask.tenant);
  const bounds = { bytes: limits.answerPartBytes, items: ask.limit };
  return pageOf(memberNames.after(ask.after), bounds, ({ name, kind, project, id }) => {
    const ipv4 = containers.get(id)?.ipv4 ?? null;
    const shown: TenantName = { name, container_id: id, kind, project, ipv4, ipv6: ipv6Of(cluster, id) };
    return JSON.stringify(shown);
  });
}
