/**
 * A container as it is shown. Pure: each read computes the status that its host's silence makes of
 * it.
 */
import { timestamp } from '../../../lib/time/timestamp.ts';
import type {
  Container,
  ContainerRecord,
  ContainerStatus,
  ContainerStatusView,
  LeftBehind,
  LeftVolumes,
  NetworkView,
  Observation,
  PullProgress,
  Reason,
  Update,
  UpdateView,
} from '../../../schemas/api/container.ts';
import { metadataOf, shown, type ContainerSpec, type ShownName } from '../../../schemas/api/fields/container.ts';
import { policyOf } from '../../../schemas/api/policy.ts';
import { limits } from '../../../schemas/limits.ts';
import { internalDomain, ipv6Of, labelOf } from '../../../schemas/tenant-network.ts';
import { isInNetwork } from '../members.ts';
import type { FleetView, HostLoss, HostCondition, TurnContext } from '../turn.ts';
import { leftOn } from './left.ts';
import { moveView } from './moving.ts';
import { upMs } from './runs.ts';
import { isUpdating, updateShown } from './updates.ts';

export interface ShownStatus {
  readonly status: ContainerStatus;
  readonly reason: Reason | null;
}

/**
 * The reason for which all containers of the host are shown as lost; `undefined` if they are not.
 */
export function lossOf(condition: HostCondition): HostLoss | undefined {
  if (condition === 'lost') return 'host_lost';
  return condition === 'fenced' || condition === 'removed' ? 'host_removed' : undefined;
}

/** The status that readers see: the record's, unless the state of its host overrides it. */
export function shownStatus(record: ContainerRecord, fleet: FleetView): ShownStatus {
  if (record.desired === 'removed') return { status: 'removing', reason: record.observed.reason };
  const { status, reason } = record.observed;
  if (record.placement.phase === 'unplaced') return { status, reason };
  const condition = fleet.condition(record.placement.host);
  const loss = lossOf(condition);
  if (loss !== undefined) return { status: 'lost', reason: loss };
  // `pending` says that no host has taken it up, which silence does not change.
  if (condition === 'silent' && status !== 'pending') return { status: 'unknown', reason: 'host_silent' };
  return { status, reason };
}

/** The sixteen fields, in the order of the API document. */
export const containerView = (record: ContainerRecord, status: ContainerStatus): Container => {
  const declared = Object.fromEntries(shown.map((name) => [name, record.spec[name]])) as Pick<ContainerSpec, ShownName>;
  return {
    id: record.id,
    tenant_id: record.tenant,
    ...declared,
    host_key: record.placement.phase === 'placed' ? record.placement.host : null,
    status,
    inserted_at: timestamp(record.insertedAtMs),
    updated_at: timestamp(record.updatedAtMs),
  };
};

interface CachedView {
  readonly status: ContainerStatus;
  readonly json: string;
}

// Records are immutable, so a view belongs to its record for as long as either lives.
const views = new WeakMap<ContainerRecord, CachedView>();

export function containerJson(record: ContainerRecord, fleet: FleetView): string {
  const { status } = shownStatus(record, fleet);
  const cached = views.get(record);
  if (cached?.status === status) return cached.json;
  const json = JSON.stringify(containerView(record, status));
  views.set(record, { status, json });
  return json;
}

export function containerStatusView(
  record: ContainerRecord,
  context: TurnContext,
  { pull, upSinceMs }: { readonly pull?: PullProgress | undefined; readonly upSinceMs: number },
): ContainerStatusView {
  const { observed } = record;
  const left = leftOn(record, context).map(leftView);
  const { status, reason } = shownStatus(record, context.fleet);
  const up = upMs(record, upSinceMs, context);
  const move = moveView(record);
  return {
    id: record.id,
    status,
    desired: record.desired,
    generation: record.generation,
    host_key: record.placement.phase === 'placed' ? record.placement.host : null,
    observed_status: record.observedAtMs === null ? null : observed.status,
    observed_at: record.observedAtMs === null ? null : timestamp(record.observedAtMs),
    reason,
    message: observed.message,
    exit_code: observed.exit_code,
    restart_count: observed.restart_count,
    next_retry_at: observed.next_retry_at,
    started_at: observed.started_at,
    addresses: observed.addresses,
    ...(up === undefined ? {} : { up_seconds: Math.min(Math.floor(up / 1000), limits.waitStableMaxSeconds) }),
    observed_generation: record.observedOrder.generation,
    restart_policy: policyOf(record).restart,
    ...(observed.failures === undefined ? {} : { failures: observed.failures }),
    ...metadataOf(record.spec),
    ...(observed.volumes === undefined ? {} : { volumes: observed.volumes }),
    ...(observed.image === undefined ? {} : { image: observed.image }),
    network: networkView(record, context),
    ...(left[0] === undefined ? {} : { left: left[0], left_on: left }),
    ...(move === undefined ? {} : { move }),
    ...(status === 'pulling' && pull !== undefined ? { pull } : {}),
    ...(record.update === undefined
      ? {}
      : {
          update: updateView(record, record.update, status === 'pulling' ? undefined : pull),
        }),
  };
}

const leftView = ({ host, volumes, atMs }: LeftBehind): LeftVolumes => ({
  host_key: host,
  volumes: [...volumes],
  left_at: timestamp(atMs),
});

/** `null` if it is to be in none. */
function networkView(record: ContainerRecord, context: TurnContext): NetworkView | null {
  const { id, spec, observed, ipv4 } = record;
  if (spec.network?.mode === 'none') return null;
  const addresses = { ipv4: ipv4 ?? null, ipv6: ipv6Of(context.cluster, id) };
  if (!isInNetwork(spec)) return { ...addresses, names: [], state: 'unavailable', ...tooManyMembers };
  const label = labelOf(spec.name);
  const { state, message } = observed.network ?? {
    state: 'unavailable' as const,
    message: 'its host has not attached it to the network',
  };
  return {
    ...addresses,
    names: label === undefined ? [] : [label, `${label}.${internalDomain}`],
    state,
    ...(state === 'ready' ? lackOf(record, context) : { reason: 'not_attached', message }),
  };
}

type Why = Pick<NetworkView, 'reason' | 'message'>;
const tooManyMembers: Why = {
  reason: 'too_many_members',
  message: `the network of its tenant had ${limits.networkMembers} members: remove some, and update this one`,
};
const noIpv4: Why = {
  reason: 'no_ipv4',
  message: 'no IPv4 address was free: it gets one by an update, when one is',
};
const madeBeforeIpv4: Why = {
  reason: 'made_before_network',
  message: 'it was made before the cluster gave IPv4 addresses: it gets one by its next update',
};
const madeBeforeNames: Why = {
  reason: 'made_before_network',
  message: 'it was made before its host had the network: it finds names from its next update on',
};

/**
 * The reason for which an attached container lacks something of its network; `null` if it lacks
 * nothing.
 */
function lackOf({ observed, ipv4 }: ContainerRecord, { tenantIpv4 }: TurnContext): Why {
  if (observed.network?.made_before === true) return madeBeforeNames;
  if (tenantIpv4 === undefined || typeof ipv4 === 'string') return { reason: null, message: null };
  return ipv4 === null ? noIpv4 : madeBeforeIpv4;
}

function updateView(record: ContainerRecord, update: Update, pull: PullProgress | undefined): UpdateView {
  const { since, from, to, atMs, lastGeneration = since, unmoved } = update;
  const { phase, reason, message } = updateShown(record, update);
  return {
    phase,
    generation: since,
    last_generation: isUpdating(record) ? record.generation : lastGeneration,
    from,
    to,
    reason,
    message,
    at: timestamp(atMs),
    ...(unmoved === undefined ? {} : { unmoved }),
    ...(phase === 'preparing' && pull !== undefined ? { pull } : {}),
  };
}

/** The detail of a container that no host has taken up. */
export const unobserved = (status: ContainerStatus, reason: Reason | null): Observation => ({
  status,
  reason,
  message: null,
  exit_code: null,
  restart_count: 0,
  next_retry_at: null,
  started_at: null,
  addresses: [],
});
