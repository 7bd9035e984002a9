/**
 * Decides whether a host may report the usage of a container, or the traffic of a VPN peer
 * (invariant A7). Pure.
 */
import type { Capacity } from '../../../schemas/api/host.ts';
import type { ContainerId, HostKey, PeerId } from '../../../schemas/ids.ts';
import { isPossible, isTraffic, type UsageItem } from '../../../schemas/records/usage.ts';
import type { PeerSeen } from '../../../schemas/wire/host.ts';
import type { PartitionView } from '../state.ts';
import type { FleetView } from '../turn.ts';

export type UsageVerdict =
  /** `name`: `undefined` if it is a peer, or if a release before 0.2.0 removed it. */
  | { readonly kind: 'accepted'; readonly name: string | undefined }
  /** Another host serves the peer's network now; this one may have served it before. */
  | { readonly kind: 'served before' }
  /** `unreadable`: the record is damaged, so this can't be decided. */
  | { readonly kind: 'refused' | 'unreadable' };

interface Places {
  readonly state: Pick<PartitionView, 'tenant'>;
  readonly fleet: Pick<FleetView, 'server'>;
}

/**
 * Accepts usage only of containers that were placed on the host, as their record says, or their
 * tombstone in the seven days after their removal, and no more than fits in an hour; and of peers
 * of the VPN networks that it serves.
 *
 * @param most the maximum that a host is believed to offer
 */
export function judgeUsage(
  places: Places,
  host: HostKey,
  { tenant, id: of, used }: Pick<UsageItem, 'tenant' | 'id' | 'used'>,
  most: Capacity,
): UsageVerdict {
  if (isTraffic(used)) return judgePeer(places, host, { tenant, id: of as PeerId });
  const id = of as ContainerId;
  if (!isPossible(used, most)) return { kind: 'refused' };
  const { containers, tombstones, damaged } = places.state.tenant(tenant);
  if (damaged.has(id)) return { kind: 'unreadable' };
  const container = containers.get(id);
  const tombstone = tombstones.get(id);
  const { history = [] } = container ?? tombstone ?? {};
  const name = container?.spec.name ?? tombstone?.name;
  return history.includes(host) ? { kind: 'accepted', name } : { kind: 'refused' };
}

/** Decides whether the host may report how it sees the peer. */
export function judgePeer(
  { state, fleet }: Places,
  host: HostKey,
  { tenant, id }: Pick<PeerSeen, 'tenant' | 'id'>,
): UsageVerdict {
  const { records, damaged } = state.tenant(tenant).peers;
  if (damaged.has(id)) return { kind: 'unreadable' };
  const record = records.get(id);
  if (record === undefined) return { kind: 'refused' };
  return fleet.server(record.network)?.host === host
    ? { kind: 'accepted', name: undefined }
    : { kind: 'served before' };
}
