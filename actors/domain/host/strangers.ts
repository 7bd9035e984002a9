/**
 * Decides which strangers of a host may go: containers that the host has and its desired set does
 * not list. Only those that the control plane gave away itself may: a container that is placed
 * elsewhere, waits for a host, or was deleted. Only an operator may remove a container that the
 * control plane does not know, or knows from before a restore (invariant A4). Pure.
 */
import { keys } from '../../../schemas/records/buckets.ts';
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import type { Stranger } from '../../../schemas/wire/host.ts';
import { otherHostsOf } from '../container/moving.ts';
import { lostWith } from '../container/transitions.ts';
import type { PartitionView } from '../state.ts';

/**
 * @param incarnation of the cluster: when it was last restored; 0 for never
 * @param mayReturn the host takes containers: what was lost with it comes back to its copy
 */
export function goneFrom(
  state: PartitionView,
  host: HostKey,
  strangers: readonly Stranger[],
  incarnation: number,
  mayReturn = false,
): Stranger[] {
  const isSinceRestore = (atMs: number | undefined): boolean => incarnation === 0 || (atMs ?? 0) > incarnation;
  return strangers.filter((stranger) => {
    const tenant = state.tenant(stranger.tenant);
    if (tenant.damaged.has(stranger.id)) return false;
    const record = tenant.containers.get(stranger.id);
    const tombstone = tenant.tombstones.get(stranger.id);
    // It was this host's once: no host learns of another host's containers (invariant A7).
    if ((record ?? tombstone)?.history.includes(host) !== true) return false;
    const last = record?.desired === 'running' ? lostWith(record) : undefined;
    if (mayReturn && last?.host === host && last.since === stranger.placement) return false;
    if (record !== undefined) return goneAtMs(record, host, stranger.placement, incarnation).some(isSinceRestore);
    return isSinceRestore(tombstone?.goneAtMs);
  });
}

/**
 * The times at which the container was moved, or prepared elsewhere, after the placement that the
 * host's copy was made under; or at which this copy was given up. A copy of a later placement is
 * not known here.
 */
function goneAtMs(
  record: ContainerRecord,
  host: HostKey,
  madeUnder: number,
  incarnation: number,
): (number | undefined)[] {
  const { placement, preparing, generation } = record;
  if ((placement.phase === 'placed' && placement.host === host) || otherHostsOf(record).includes(host)) return [];
  const times: (number | undefined)[] = [];
  if (madeUnder < (placement.since ?? generation)) times.push(placement.atMs);
  const { since = 0, host: prepared } = preparing ?? {};
  // The preparation is over, or `otherHostsOf` would name the host. After a restore, a copy that
  // ran may bear the same number, from a placement that the restore has forgotten.
  const isGivenUp = incarnation === 0 && prepared === host && madeUnder === since;
  if (madeUnder < since || isGivenUp) times.push(preparing?.atMs);
  return times;
}

/**
 * The keys that a verdict rests on, which must be committed before the host gets it (invariant A3).
 */
export const keysOf = (strangers: readonly Stranger[]): string[] =>
  strangers.map(({ tenant, id }) => keys.container(tenant, id));
