/**
 * Remains of deleted resources: tombstones of containers and peers, and serials of certificates
 * that a network must refuse. Each takes its owner's memory for days or years. A cap on deletions
 * an hour bounds the containers' tombstones of a week. Peers have a cap on those that are gone, and
 * an hourly limit keeps a looping client from using it up. At a limit, creates are refused;
 * removals never are, so a tenant can always end what costs. Pure.
 */
import { limits } from '../../../schemas/limits.ts';
import type { PeerRecord } from '../../../schemas/api/peer.ts';
import { capsOf } from '../../../schemas/api/tenant.ts';
import type { TenantView } from './state.ts';
import { conflict, refuseFor, type Turn, type TurnContext } from '../turn.ts';
import { tombstoneEndMs, type PeersView } from '../vpn-state.ts';

/**
 * Tombstones of peers and revoked certificates of one tenant: 250–500 bytes each, here and in the
 * network, for the life of a certificate (820 days). 2,000 with the default cap of 10.
 */
export const gonePeersMin = 2000;
const gonePeersPerCap = 200;
const gonePeersMost = 100_000;

const { anHourMs: hourMs } = limits;

/** Grows with the cap, which is the operator's to set; no cap is the largest. */
const scaled = (cap: number | null, perOne: number, min: number): number =>
  cap === null ? gonePeersMost : Math.min(Math.max(cap * perOne, min), gonePeersMost);

export const gonePeersMax = (cap: number | null): number => scaled(cap, gonePeersPerCap, gonePeersMin);

export const peersGoneAnHourMax = (cap: number | null): number =>
  scaled(cap, limits.peersGoneAnHourPerCap, limits.peersGoneAnHourMin);

/** `true` within the last hour; the clock of an earlier owner may have been ahead. */
const isLately = (atMs: number, { nowMs }: TurnContext): boolean => Math.abs(nowMs - atMs) < hourMs;

/** Milliseconds until this was an hour ago. */
const endOfHour = (atMs: number, { nowMs }: TurnContext): number => Math.min(atMs - nowMs, 0) + hourMs;

export const deletedLately = ({ deletions }: TenantView, context: TurnContext): number =>
  deletions.reduce((count, atMs) => count + (isLately(atMs, context) ? 1 : 0), 0);

/** The refusal of a further container for now; `undefined` if the tenant can have one. */
export function tooManyContainersGone({ deletions, record }: TenantView, context: TurnContext): Turn | undefined {
  const max = capsOf(record.caps).deletes_per_hour;
  if (max === null || deletions.length < max) return undefined;
  const firstMs = deletions[deletions.length - max];
  if (firstMs === undefined || !isLately(firstMs, context)) return undefined;
  return refuseFor(
    endOfHour(firstMs, context),
    `${max} or more containers of this tenant were deleted in the last hour, which is its cap deletes_per_hour: wait for as long ` +
      'as Retry-After says, stop and start containers in place of deleting them, or ask an operator for a higher cap',
  );
}

/** Tombstones of peers, and certificates that are refused or will be when their peer is removed. */
export function gonePeers({ records, tombstones }: PeersView): number {
  let count = tombstones.size;
  for (const { revoked, renewed } of records.values()) count += revoked.length + renewed.length;
  for (const { revoked } of tombstones.values()) count += revoked.length;
  return count;
}

/** The time, in ms, at which the first of them is forgotten. */
function firstEndMs({ records, tombstones }: PeersView): number {
  let endMs = Infinity;
  for (const tombstone of tombstones.values()) endMs = Math.min(endMs, tombstoneEndMs(tombstone));
  for (const { revoked } of records.values()) for (const { notAfterMs } of revoked) endMs = Math.min(endMs, notAfterMs);
  return endMs;
}

function tooManyRemembered({ peers, record }: TenantView, context: TurnContext): Turn | undefined {
  const max = gonePeersMax(capsOf(record.caps).vpn_peers);
  const count = gonePeers(peers);
  if (count < max) return undefined;
  return refuseFor(
    firstEndMs(peers) - context.nowMs,
    `${count} removed peers and replaced certificates of this tenant are remembered until their certificates expire, and at most ` +
      `${max} may be: use the peers that there are, or ask an operator for a higher cap of vpn_peers, which allows more`,
  );
}

/** The refusal of a further peer for now; `undefined` if the tenant can have one. */
export function tooManyPeersGone(tenant: TenantView, context: TurnContext): Turn | undefined {
  const max = peersGoneAnHourMax(capsOf(tenant.record.caps).vpn_peers);
  const lately = [...tenant.peers.tombstones.values()].filter(({ goneAtMs }) => isLately(goneAtMs, context));
  const first = lately[lately.length - max];
  if (first === undefined) return tooManyRemembered(tenant, context);
  return refuseFor(
    endOfHour(first.goneAtMs, context),
    `${lately.length} peers of this tenant were removed in the last hour, and after ${max} none is made: wait for as long as ` +
      'Retry-After says, or ask an operator for a higher cap of vpn_peers, which allows more',
  );
}

const takesAnother = conflict(
  'too_many',
  `this peer has had ${limits.peerRevocationsKept} certificates that have not expired, which is the most that are remembered of one: ` +
    'remove the peer and make another',
);

/**
 * The refusal of further keys of a peer for now; `undefined` if it can have some. A renewal of its
 * certificate is no rotation: time causes it.
 */
export function tooManyRotations(tenant: TenantView, record: PeerRecord, context: TurnContext): Turn | undefined {
  const { revoked, rotatedAtMs = [] } = record;
  const alive = revoked.filter(({ notAfterMs }) => notAfterMs > context.expiryMs);
  if (alive.length >= limits.peerRevocationsKept) return takesAnother;
  const firstMs = rotatedAtMs[rotatedAtMs.length - limits.peerRotationsAnHour];
  if (firstMs === undefined || !isLately(firstMs, context)) return tooManyRemembered(tenant, context);
  return refuseFor(
    endOfHour(firstMs, context),
    `the keys of this peer were replaced ${limits.peerRotationsAnHour} times in the last hour, which is the most: wait for as long ` +
      'as Retry-After says',
  );
}
