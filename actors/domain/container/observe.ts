/** Applies the reports of hosts to the records of containers. Pure. */
import type { ContainerRecord, NetworkSeen, Observation, ObservationOrder } from '../../../schemas/api/container.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { withoutControls } from '../../../schemas/visible.ts';
import type { PullItem, ReportItem } from '../../../schemas/wire/host.ts';
import type { PartitionView } from '../state.ts';
import type { TenantView } from '../tenant/state.ts';
import { noChanges, type Changes, type EventDraft, type TurnContext } from '../turn.ts';
import { atRest, giveUpRun, hasEnded, withLastRun } from './endings.ts';
import {
  handleLeaving,
  handlePreparation,
  handlePullProgress,
  keepMoving,
  leave,
  leaveDrained,
  leaveStopped,
  whileLeaving,
} from './moves.ts';
import { leavingOf, preparationOf } from './moving.ts';
import {
  changed,
  eventOf,
  findHost,
  leaveTombstone,
  lostWith,
  placeOn,
  rejectionsWith,
  replace,
} from './transitions.ts';
import { isNewRun, isRunningOnce } from './runs.ts';
import { backFrom } from './versions.ts';
import { handleUpdate, isUpdating, withProof } from './updates.ts';

/** Statuses that an agent may report; the others are the control plane's. */
const reportable: ReadonlySet<Observation['status']> = new Set([
  'pulling',
  'starting',
  'running',
  'backoff',
  'stopping',
  'stopped',
  'failed',
  'removing',
]);

const isNewer = (order: ObservationOrder, than: ObservationOrder): boolean =>
  order.generation !== than.generation
    ? order.generation > than.generation
    : order.session !== than.session
      ? order.session > than.session
      : order.seq > than.seq;

/** JSON has numbers beyond what counts in one exactly. */
const asCount = (number: number): number =>
  Math.min(Number.MAX_SAFE_INTEGER, Math.max(Number.MIN_SAFE_INTEGER, number));

const networkSeen = ({ state, message }: NetworkSeen): NetworkSeen => ({
  state,
  message: message === null ? null : withoutControls(message),
});

/** The stored fields of a report; a host may send anything beside them, and in its message. */
const observationOf = (given: Observation): Observation => ({
  status: given.status,
  reason: given.reason,
  message: given.message === null ? null : withoutControls(given.message),
  exit_code: given.exit_code === null ? null : asCount(given.exit_code),
  restart_count: asCount(given.restart_count),
  next_retry_at: given.next_retry_at,
  started_at: given.started_at,
  addresses: given.addresses.map(({ port, address }) => ({
    port: withoutControls(port),
    address: withoutControls(address),
  })),
  ...(given.failures === undefined ? {} : { failures: given.failures }),
  ...(given.refused_login === undefined ? {} : { refused_login: given.refused_login }),
  ...(given.volumes === undefined || given.volumes.length === 0 ? {} : { volumes: given.volumes.map(withoutControls) }),
  ...(given.image === undefined ? {} : { image: { digest: given.image.digest, resolved_at: given.image.resolved_at } }),
  ...(given.network === undefined ? {} : { network: networkSeen(given.network) }),
});

/** A restart counts as news, so that every crash is an event. */
const isNews = (before: Observation, after: Observation): boolean =>
  before.status !== after.status ||
  before.reason !== after.reason ||
  before.exit_code !== after.exit_code ||
  before.restart_count !== after.restart_count;

/**
 * `true` if the item is of a generation that the record has yet to reach: the record is that of a
 * backup. The host must report it again, because the next change of the container may reach the
 * same generation.
 */
export function isAhead(state: PartitionView, host: HostKey, { tenant, id, generation }: ReportItem): boolean {
  const record = state.tenant(tenant).containers.get(id);
  if (record?.placement.phase !== 'placed' || record.placement.host !== host) return false;
  return generation > record.generation;
}

/**
 * One item of a report of `host`. It counts only if the record names that host (invariant A7), and
 * the item is of the wanted generation and newer than the last.
 */
export function observe(
  state: PartitionView,
  host: HostKey,
  session: number,
  item: ReportItem,
  context: TurnContext,
): Changes {
  const tenant = state.tenant(item.tenant);
  const record = tenant.containers.get(item.id);
  if (record === undefined) return noChanges;
  if (leavingOf(record)?.host === host) return handleLeaving(record, item, context);
  if (preparationOf(record)?.host === host) return handlePreparation(record, item, tenant, context);
  if (record.placement.phase !== 'placed' || record.placement.host !== host) return noChanges;
  const order = { generation: item.generation, session, seq: item.seq };
  const known = state.lastHeard(record);
  if (item.generation !== record.generation || !isNewer(order, known)) return noChanges;

  if (item.gone && record.desired === 'removed') return leaveTombstone(record, context);
  if (item.gone && item.observation.reason === 'rejected')
    return rejected(state, record, order, item.observation, context);
  if (item.gone || !reportable.has(item.observation.status)) return noChanges;

  const observed = withLastRun(record, whileLeaving(record, observationOf(item.observation)));
  if (observed.status === 'removing' && !isRemovalWorthTelling(record, observed)) {
    return { ...noChanges, heard: { id: record.id, order } };
  }
  const elsewhere = movedFromFault(state, record, observed, context);
  if (elsewhere !== undefined) return elsewhere;
  const updated = isToldOfUpdate(record, item) ? handleUpdate(record, item, context) : record;
  const isBack = updated.generation !== record.generation;
  const heard = isBack ? backFrom(record, updated) : updated;
  const isOld = heard === record && isRepeated(record, observed, order, known);
  if (isOld) return { ...noChanges, heard: { id: record.id, order } };
  const seen: ContainerRecord = {
    ...withProof(heard, state.inMemory(record.id).upSinceMs, context),
    observed,
    observedOrder: order,
    observedAtMs: context.nowMs,
    updatedAtMs: record.observed.status === observed.status ? heard.updatedAtMs : context.nowMs,
  };
  const isOver = hasEnded(seen, item.ended === true);
  const next = isOver ? atRest(seen, context) : seen;
  const events = isNews(record.observed, next.observed) ? [toldByHost(next)] : [];
  const settled = endOfUpdate(record, seen);
  return {
    ...(isNewRun(record, seen) ? { heard: { id: record.id, upSinceMs: context.servedMs } } : {}),
    records: [next],
    deletes: [],
    events: settled === undefined ? events : [...events, { ...toldByHost(next), type: settled }],
    effects: [
      { kind: 'changed', tenant: record.tenant, id: record.id },
      // The host keeps the other version's container until its desired state says that the update
      // is over.
      ...(isUpdating(record) === isUpdating(seen) && !isOver ? [] : [{ kind: 'doorbell' as const, host }]),
    ],
  };
}

/**
 * `true` if the host knows of the update: one that keeps a copy ready does not, and neither does
 * one that another host is to relieve of the container.
 */
const isToldOfUpdate = (record: ContainerRecord, { prepared }: ReportItem): boolean =>
  prepared === undefined && preparationOf(record) === undefined && leavingOf(record) === undefined;

/**
 * The end of an update. One that the end of a run, or a stop, breaks off has proved nothing, and
 * ends without an event.
 */
function endOfUpdate(
  before: ContainerRecord,
  { update, observed }: ContainerRecord,
): 'updated' | 'update_failed' | undefined {
  if (!isUpdating(before) || update?.previous !== undefined) return undefined;
  if (update?.unproven !== undefined) return observed.status === 'failed' ? 'update_failed' : undefined;
  return update?.phase === 'rolled_back' ? 'update_failed' : 'updated';
}

/**
 * Notes the progress of a pull, in memory only, because it changes every second and is not needed
 * after a crash. On the host of the placement it counts only while the stored status is `pulling`,
 * or an update is prepared; on another host it keeps the preparation from being given up.
 */
export function observePull(state: PartitionView, host: HostKey, item: PullItem, context: TurnContext): Changes {
  const { tenant, id, generation, layers, bytes, total } = item;
  const record = state.tenant(tenant).containers.get(id);
  if (record?.placement.phase !== 'placed' || record.generation !== generation) return noChanges;
  if (record.placement.host !== host) return handlePullProgress(record, host, context);
  if (record.observed.status !== 'pulling' && record.update?.phase !== 'preparing') return noChanges;
  const pull = { layers: asCount(layers), bytes: asCount(bytes), total: total === null ? null : asCount(total) };
  return { ...noChanges, heard: { id, pull } };
}

/**
 * `true` if a new session repeats the stored observation. Then nothing is committed (ADR 15):
 * memory keeps the order, and after a crash of the owner the host's session refuses messages of the
 * sessions before it (hosts.ts). Inside a session the order is committed even for an equal
 * observation: an agent numbers each observation once, so another one may be under way.
 */
const isRepeated = (
  record: ContainerRecord,
  observed: Observation,
  order: ObservationOrder,
  known: ObservationOrder,
): boolean =>
  order.generation === known.generation &&
  order.session !== known.session &&
  JSON.stringify(observationOf(record.observed)) === JSON.stringify(observed);

/**
 * `true` if a removal in progress makes an event: only when something delays it, and when that is
 * over.
 */
const isRemovalWorthTelling = ({ desired, observed: before }: ContainerRecord, { reason }: Observation): boolean =>
  desired === 'removed' && (reason !== null || before.status === 'removing');

/** `true` if the host lacks something, and the container is not at fault. */
const isFaultOfHost = ({ spec }: ContainerRecord, { status, reason }: Observation): boolean =>
  (status === 'backoff' || status === 'failed') &&
  (reason === 'host_fault' ||
    reason === 'secret_missing' ||
    (reason === 'image_not_found' && spec.pull_policy === 'never'));

/**
 * A container that the platform placed is tried elsewhere, if there is another host; its rejections
 * keep it from coming back at once. Otherwise it waits where it is, with the reason shown. A host
 * that the tenant chose is kept.
 */
function movedFromFault(
  state: PartitionView,
  record: ContainerRecord,
  observed: Observation,
  context: TurnContext,
): Changes | undefined {
  const { placement, desired } = record;
  if (placement.phase !== 'placed' || placement.chosenBy !== 'platform' || desired !== 'running') return undefined;
  if (!isFaultOfHost(record, observed)) return undefined;
  const refused = { ...record, rejections: rejectionsWith(record, placement.host, context) };
  const found = findHost(refused, state.tenant(record.tenant), context);
  if (found === undefined) return undefined;
  const changes = leave(refused, found, context);
  return { ...changes, events: [toldByHost({ ...record, observed }), ...changes.events] };
}

/** The event for a host that has just reported, however long it was silent before. */
const toldByHost = (container: ContainerRecord): EventDraft => ({
  type: 'status',
  container,
  status: container.desired === 'removed' ? 'removing' : container.observed.status,
});

/**
 * Handles a rejection by its host's admission: the platform tries another host, a tenant's own
 * choice fails.
 */
function rejected(
  state: PartitionView,
  record: ContainerRecord,
  order: ObservationOrder,
  observation: Observation,
  context: TurnContext,
): Changes {
  if (record.placement.phase !== 'placed') return noChanges;
  const { host, chosenBy } = record.placement;
  const refused = { ...record, rejections: rejectionsWith(record, host, context) };
  if (chosenBy === 'platform') {
    return replace(refused, state.tenant(record.tenant), context);
  }
  const failed: ContainerRecord = {
    ...refused,
    observed: { ...observationOf(observation), status: 'failed', reason: 'rejected' },
    observedOrder: order,
    observedAtMs: context.nowMs,
    updatedAtMs: context.nowMs,
  };
  return changed(failed, [eventOf('status', failed, context)]);
}

/**
 * Settles a container that waits for a host, or whose host is gone or is being emptied. Called
 * again and again by the sweep.
 */
export function settle(state: PartitionView, record: ContainerRecord, context: TurnContext): Changes {
  const tenant = state.tenant(record.tenant);
  const kept = keepMoving(record, tenant, state.preparationSeen(record.id), context);
  if (kept !== undefined) return kept;
  if (record.placement.phase === 'unplaced') {
    return record.desired === 'running' ? placed(record, tenant, context) : noChanges;
  }
  const { host, chosenBy } = record.placement;
  const condition = context.fleet.condition(host);
  if (condition === 'lost' || condition === 'removed') {
    // The host that it was moved from may still run it.
    if (record.desired === 'removed')
      return leavingOf(record) === undefined ? leaveTombstone(record, context) : noChanges;
    if (isRunningOnce(record)) return giveUpRun(record, context);
    return chosenBy === 'platform' ? replace(record, tenant, context) : noChanges;
  }
  // It may still run there, also where the host was being drained.
  if (condition === 'fenced') return noChanges;
  if (context.fleet.host(host)?.draining !== true || chosenBy !== 'platform') return noChanges;
  switch (record.desired) {
    case 'running':
      return leaveDrained(record, tenant, context);
    case 'stopped':
      return leaveStopped(record, tenant, context);
    case 'removed':
      return noChanges;
  }
}

/** Places it on a host, if there is one. */
function placed(record: ContainerRecord, tenant: TenantView, context: TurnContext): Changes {
  const host = findHost(record, tenant, context);
  if (host === undefined) return noChanges;
  const next = placeOn(record, host, 'platform', context);
  // If the host that it was lost with is back, its copy there goes.
  const last = lostWith(record);
  return changed(
    next,
    [eventOf('placed', next, context)],
    last === undefined ? [] : [{ kind: 'doorbell', host: last.host }],
  );
}
