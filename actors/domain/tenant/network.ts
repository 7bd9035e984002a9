/** The network of a tenant, as the tenant sees it. Pure. */
import { keyOfName, type TenantName, type TenantNetwork } from '../../../schemas/api/tenant-network.ts';
import { limits } from '../../../schemas/limits.ts';
import { internalDomain, ipv6Of, ipv6RangeOf } from '../../../schemas/tenant-network.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { namesOf } from '../members.ts';
import { pageByKey } from '../page.ts';
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
  const { limit, after } = ask;
  function* all(): Generator<Omit<TenantName, 'ipv6'>, void, void> {
    for (const { name, kind, member } of namesOf(state.tenant(ask.tenant))) {
      const { id: container_id, project = null, ipv4 = null } = member;
      yield { name, container_id, kind, project, ipv4 };
    }
  }
  return pageByKey(all(), {
    keyOf: keyOfName,
    limit,
    after,
    maxBytes: limits.answerPartBytes,
    render: (name) => JSON.stringify({ ...name, ipv6: ipv6Of(cluster, name.container_id) } satisfies TenantName),
  });
}
