/** Whether a host may say what a container has used (invariant A7). Pure. */
import type { Capacity } from '../../../schemas/api/host.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { isPossible, type UsageItem } from '../../../schemas/records/usage.ts';
import type { PartitionView } from '../state.ts';

/** `unreadable`: the record is damaged, so nobody knows. */
export type UsageVerdict =
  /** `name`: undefined if a release before removed the container. */
  { readonly kind: 'accepted'; readonly name: string | undefined } | { readonly kind: 'refused' | 'unreadable' };

/**
 * Only of containers that were placed on it, as their record says, or their tombstone in the seven
 * days after their removal, and no more than fits in an hour.
 *
 * @param most what a host is believed to offer at most
 */
export function judgeUsage(
  state: Pick<PartitionView, 'tenant'>,
  host: HostKey,
  { tenant, id, used }: Pick<UsageItem, 'tenant' | 'id' | 'used'>,
  most: Capacity,
): UsageVerdict {
  if (!isPossible(used, most)) return { kind: 'refused' };
  const { containers, tombstones, damaged } = state.tenant(tenant);
  if (damaged.has(id)) return { kind: 'unreadable' };
  const container = containers.get(id);
  const tombstone = tombstones.get(id);
  const { history = [] } = container ?? tombstone ?? {};
  const name = container?.spec.name ?? tombstone?.name;
  return history.includes(host) ? { kind: 'accepted', name } : { kind: 'refused' };
}
