/** Whether a host may say what a container has used (invariant A7). Pure. */
import type { ContainerId, HostKey, TenantId } from '../../../schemas/ids.ts';
import type { PartitionView } from '../state.ts';

/** `unreadable`: the record is damaged, so nobody knows. */
export type UsageVerdict =
  /** `name`: undefined if the container is gone. */
  { readonly kind: 'accepted'; readonly name: string | undefined } | { readonly kind: 'refused' | 'unreadable' };

/**
 * Only of containers that were placed on it, as their record says, or their tombstone in the seven
 * days after their removal.
 */
export function judgeUsage(
  state: Pick<PartitionView, 'tenant'>,
  host: HostKey,
  { tenant, id }: { readonly tenant: TenantId; readonly id: ContainerId },
): UsageVerdict {
  const { containers, tombstones, damaged } = state.tenant(tenant);
  if (damaged.has(id)) return { kind: 'unreadable' };
  const container = containers.get(id);
  const { history = [] } = container ?? tombstones.get(id) ?? {};
  return history.includes(host) ? { kind: 'accepted', name: container?.spec.name } : { kind: 'refused' };
}
