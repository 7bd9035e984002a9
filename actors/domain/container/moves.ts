/**
 * Moves containers off a host that is alive, so that no two hosts run one (ADR 32).
 *
 * 1. *Preparing*: it runs on; another host pulls its image and makes a copy that it does not start.
 * 2. *Leaving*: it is placed on the other host. The former host stops it and reports that; until
 *    then the other one only keeps its copy ready.
 * 3. The report of the former host releases it: the other one starts its copy.
 *
 * Pure.
 */
import type { ContainerRecord, Observation, Preparation, Reason } from '../../../schemas/api/container.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { ReportItem } from '../../../schemas/wire/host.ts';
import { fits } from '../placement.ts';
import { excessInRegion, refuseExcess } from '../tenant/quota.ts';
import { regionsThatMayPull } from '../tenant/registries.ts';
import { amountsOf, quotaAmountsOf, type TenantView } from '../tenant/state.ts';
import {
  noChanges,
  conflict,
  type Changes,
  type FleetHost,
  type PreparationSeen,
  type Turn,
  type TurnContext,
} from '../turn.ts';
import { leavingOf, otherHostsOf, preparationOf } from './moving.ts';
import { isRunningOnce } from './runs.ts';
import { changed, eventOf, findHost, nextSince, placeOn, rejectionsWith, unplace } from './transitions.ts';
import { isUpdating, rolledBack } from './updates.ts';
import { backFrom } from './versions.ts';

/** Rings every host that has the container in its desired set. */
const toldAll = (before: ContainerRecord, changes: Changes): Changes => {
  const placed = before.placement.phase === 'placed' ? [before.placement.host] : [];
  const hosts = new Set([...placed, ...otherHostsOf(before), ...changes.records.flatMap(hostsOfRecord)]);
  const others = changes.effects.filter(({ kind }) => kind !== 'doorbell');
  return { ...changes, effects: [...others, ...[...hosts].map((host) => ({ kind: 'doorbell' as const, host }))] };
};
const hostsOfRecord = (record: Changes['records'][number]): HostKey[] =>
  record.kind !== 'container'
    ? []
    : [...(record.placement.phase === 'placed' ? [record.placement.host] : []), ...otherHostsOf(record)];

/** Moves a container that the platform placed off a host that is drained. */
export function leaveDrained(record: ContainerRecord, tenant: TenantView, context: TurnContext): Changes {
  const { placement, observed } = record;
  if (placement.phase !== 'placed') return noChanges;
  const from = context.fleet.host(placement.host);
  // It would never report that the container has stopped.
  if (from === undefined || !from.hasEngine || from.condition === 'silent') return noChanges;
  if (preparationOf(record) !== undefined || leavingOf(record) !== undefined) return noChanges;
  // It has two versions here, and the other host would have one.
  if (isUpdating(record)) return noChanges;
  // It would run a second time.
  if (isRunningOnce(record)) return noChanges;
  if (!context.fleet.mayLeave(from.key)) return noChanges;
  const host = findHost(record, tenant, context);
  if (host === undefined) return noChanges;
  const isUp = observed.status === 'running' || observed.status === 'starting';
  return isUp ? prepare(record, host, context) : leave(record, host, context);
}

/**
 * Moves a stopped container too; where there is no room for it, it waits for its start without a
 * host.
 */
export function leaveStopped(record: ContainerRecord, tenant: TenantView, context: TurnContext): Changes {
  if (!isDown(record.observed) || leavingOf(record) !== undefined) return noChanges;
  const host = findHost(record, tenant, context);
  if (host !== undefined) return leave(record, host, context);
  const next = unplace(record, context);
  return toldAll(record, changed(next, [eventOf('unplaced', next, context)]));
}

function prepare(
  record: ContainerRecord,
  { key: host, region }: FleetHost,
  context: TurnContext,
  chosenBy?: 'tenant',
): Changes {
  const preparing: Preparation = {
    ...{ host, region, since: nextSince(record), atMs: context.nowMs },
    ...(chosenBy === undefined ? {} : { chosenBy, generation: record.generation }),
  };
  // So that the host may judge its copy there, as every copy (strangers.ts).
  const history = [...record.history.filter((key) => key !== host), host].slice(-limits.placementHistory);
  return toldAll(record, changed({ ...record, preparing, history }, []));
}

/**
 * Moves for an update that its host has no room for: another host prepares the new version, or
 * takes a container that does not run. `undefined` if no host has room.
 */
export function moveUpdate(
  record: ContainerRecord,
  tenant: TenantView,
  context: TurnContext,
): { readonly record: ContainerRecord; readonly changes: Changes } | undefined {
  if (record.placement.phase !== 'placed' || record.placement.chosenBy !== 'platform') return undefined;
  if (preparationOf(record) !== undefined || leavingOf(record) !== undefined) return undefined;
  const host = findHost(record, tenant, context);
  if (host === undefined) return undefined;
  const changes = isUpdating(record) ? prepare(record, host, context) : leave(record, host, context);
  const [moved] = changes.records;
  return moved?.kind === 'container' ? { record: moved, changes } : undefined;
}

/** The refusal to move it to this host, which its tenant may use; `undefined` if it can move. */
export function refusalToMove(
  record: ContainerRecord,
  host: FleetHost,
  tenant: TenantView,
  context: TurnContext,
): Turn | undefined {
  const amounts = quotaAmountsOf(record);
  const { placement } = record;
  const over =
    placement.phase === 'placed' && placement.region === host.region
      ? undefined
      : excessInRegion(tenant, host.region, amounts);
  if (over !== undefined) return refuseExcess(over);
  const need = { id: record.id, ...amountsOf(record), diskBytes: amounts.disk_bytes };
  if (!fits(host, need))
    return conflict('no_host', 'this host is not up, takes no more containers, or has no room for it: choose another');
  if (placement.phase === 'unplaced') return undefined;
  if (preparationOf(record) !== undefined || leavingOf(record) !== undefined)
    return conflict('elsewhere', 'it is moving to another host already: wait until it is there');
  if (isRunningOnce(record)) return conflict('elsewhere', 'it runs once, and would run a second time on another host');
  const from = context.fleet.condition(placement.host);
  return from === 'silent' || from === 'fenced' || from === 'unheard'
    ? conflict(
        'elsewhere',
        'its host does not answer, so it may still run there: wait until the host is back, or is lost',
      )
    : undefined;
}

/** Moves it to the host that its tenant asks for; `refusalToMove` has nothing against it. */
export function moveTo(record: ContainerRecord, host: FleetHost, context: TurnContext): Changes {
  const { placement, observed } = record;
  const condition = placement.phase === 'placed' ? context.fleet.condition(placement.host) : 'lost';
  if (condition === 'lost' || condition === 'removed') {
    const placed = placeOn(record, host, 'tenant', context);
    const next = record.desired === 'running' ? placed : { ...placed, observed };
    return toldAll(record, changed(next, [eventOf('placed', next, context)]));
  }
  const isUp = observed.status === 'running' || observed.status === 'starting';
  return isUp && record.desired === 'running'
    ? prepare(record, host, context, 'tenant')
    : leave(record, host, context, 'tenant');
}

/**
 * Places it on another host, which starts it when the present one, which lives, has stopped it.
 */
export function leave(
  record: ContainerRecord,
  host: FleetHost,
  context: TurnContext,
  chosenBy: 'tenant' | 'platform' = 'platform',
): Changes {
  const { placement } = record;
  if (placement.phase !== 'placed') return noChanges;
  const before = leavingOf(record);
  const leaving = before ?? { host: placement.host, since: placement.since, atMs: context.nowMs };
  const placed = placeOn(record, host, chosenBy, context);
  const observed = record.desired === 'stopped' ? record.observed : whileStopping(record, placed.observed);
  const next = { ...placed, observed, leaving };
  return toldAll(record, changed(next, [eventOf('placed', next, context)]));
}

/** A container that is up is stopped on the host that it leaves, and serves for its whole grace. */
const whileStopping = ({ observed: { status } }: ContainerRecord, placed: Observation): Observation =>
  status === 'running' || status === 'starting' || status === 'stopping' ? { ...placed, status: 'stopping' } : placed;

/**
 * Looks at a move under way; called by the sweep.
 * @param seen the last progress of the preparation, as far as this owner knows
 */
export function keepMoving(
  record: ContainerRecord,
  tenant: TenantView,
  seen: PreparationSeen | undefined,
  context: TurnContext,
): Changes | undefined {
  const leaving = leavingOf(record);
  if (leaving !== undefined) {
    const condition = context.fleet.condition(leaving.host);
    // The platform assumes that a lost host runs nothing.
    if (condition === 'lost' || condition === 'removed') return released(record, context);
  }
  const preparing = preparationOf(record);
  if (preparing === undefined || record.placement.phase !== 'placed') return undefined;
  const from = context.fleet.host(record.placement.host);
  // A process that has just started does not know the hosts yet.
  if (from === undefined || context.fleet.condition(preparing.host) === 'unheard') return noChanges;
  const isAsked = from.draining || preparing.chosenBy === 'tenant';
  if (!isAsked && !isUpdating(record)) return giveUp(record, null, context);
  if (preparing.isReady === true) return moveToReady(record, preparing, tenant, context);
  if (hostToTake(record, preparing, tenant, context) === undefined) return giveUp(record, 'no_host', context);
  // An owner that has just loaded it does not know how far the other host is.
  if (seen?.since !== preparing.since) return getsOn(record, preparing, context);
  const isLate = context.servedMs - seen.atMs >= limits.preparationMs;
  return isLate ? giveUp(record, 'host_fault', context) : noChanges;
}

/** Starts the deadline of the preparation again; nothing is stored. */
const getsOn = ({ id }: ContainerRecord, { since }: Preparation, { servedMs }: TurnContext): Changes => ({
  ...noChanges,
  heard: { id, preparation: { since, atMs: servedMs } },
});

/** Notes that its image arrives on the host that prepares it. */
export function handlePullProgress(record: ContainerRecord, host: HostKey, context: TurnContext): Changes {
  const preparing = preparationOf(record);
  return preparing?.host === host ? getsOn(record, preparing, context) : noChanges;
}

/**
 * The host that prepares it, if it may still take it: it is there, and in a region with room.
 */
function hostToTake(
  record: ContainerRecord,
  preparing: Preparation,
  tenant: TenantView,
  context: TurnContext,
): FleetHost | undefined {
  const { region } = preparing;
  const host = context.fleet.host(preparing.host);
  if (host?.schedulable !== true || host.condition !== 'up' || host.region !== region) return undefined;
  if (tenant.settingsDamaged || !regionsThatMayPull(tenant.record, tenant.record.regions, record.spec).includes(region))
    return undefined;
  const isSameRegion = record.placement.phase === 'placed' && record.placement.region === region;
  const hasRoom = isSameRegion || excessInRegion(tenant, region, quotaAmountsOf(record)) === undefined;
  return hasRoom ? host : undefined;
}

/** The copy is ready: now the present host is to stop the container. */
function moveToReady(
  record: ContainerRecord,
  preparing: Preparation,
  tenant: TenantView,
  context: TurnContext,
): Changes {
  const host = hostToTake(record, preparing, tenant, context);
  return host === undefined ? giveUp(record, 'no_host', context) : leave(record, host, context, preparing.chosenBy);
}

/** It stays where it is for now; the host that prepared it is not asked again soon. */
function giveUp(record: ContainerRecord, reason: Reason | null, context: TurnContext): Changes {
  const preparing = preparationOf(record);
  if (preparing === undefined) return noChanges;
  const rejections = reason === null ? record.rejections : rejectionsWith(record, preparing.host, context);
  const next: ContainerRecord = {
    ...record,
    preparing: { ...preparing, givenUp: reason },
    rejections,
  };
  if (!isUpdating(next)) return toldAll(record, changed(next, []));
  const message = 'another host was to run the new version, and could not make it';
  const back = backFrom(next, rolledBack(next, { reason: reason ?? 'no_host', message }, context));
  return toldAll(record, changed(back, [eventOf('update_failed', back, context)]));
}

/** Handles a report of the host that prepares it. */
export function handlePreparation(
  record: ContainerRecord,
  { generation, gone, prepared, observation }: ReportItem,
  tenant: TenantView,
  context: TurnContext,
): Changes {
  const preparing = preparationOf(record);
  if (preparing === undefined || generation !== record.generation) return noChanges;
  // Of a preparation on the same host that was given up.
  if (prepared !== undefined && prepared !== preparing.since) return noChanges;
  const { status, reason } = observation;
  if (gone || status === 'failed' || status === 'backoff') return giveUp(record, reason, context);
  if (status !== 'stopped' || preparing.isReady === true) return noChanges;
  if (context.fleet.condition(preparing.host) === 'up') return moveToReady(record, preparing, tenant, context);
  // It is not repeated; the sweep goes on from here.
  return toldAll(record, changed({ ...record, preparing: { ...preparing, isReady: true } }, []));
}

/** Handles a report of the host that it is leaving. */
export function handleLeaving(
  record: ContainerRecord,
  { generation, gone, observation }: ReportItem,
  context: TurnContext,
): Changes {
  const leaving = leavingOf(record);
  if (leaving === undefined || generation !== record.generation) return noChanges;
  return gone || isDown(observation) ? released(record, context) : noChanges;
}

/**
 * `true` if a container that should not run is down: one that has run to its end may have failed.
 */
const isDown = ({ status }: Observation): boolean => status === 'stopped' || status === 'failed';

/** No other host runs it any more: its host may start it. */
function released(record: ContainerRecord, context: TurnContext): Changes {
  const { leaving: _, ...rest } = record;
  const next: ContainerRecord =
    rest.desired === 'stopped'
      ? {
          ...rest,
          observed: { ...rest.observed, ...(isDown(rest.observed) ? {} : { status: 'stopped' }) },
          updatedAtMs: context.nowMs,
        }
      : rest.observed.status === 'stopping'
        ? { ...rest, observed: { ...rest.observed, status: 'pending' }, updatedAtMs: context.nowMs }
        : rest;
  return toldAll(record, changed(next, []));
}

/**
 * The host of its placement reports `stopped` for a copy that it keeps ready: the container waits
 * for the host that it leaves.
 */
export const whileLeaving = (record: ContainerRecord, observed: Observation): Observation =>
  leavingOf(record) === undefined || observed.status !== 'stopped' || record.observed.status === 'stopped'
    ? observed
    : { ...observed, status: record.desired === 'running' ? waitingStatus(record) : 'stopping' };

/** The host that it leaves is stopping it, or has nothing to stop. */
const waitingStatus = ({ observed: { status } }: ContainerRecord): Observation['status'] =>
  status === 'stopping' ? status : 'pending';
