/**
 * The steps that a container's record takes, each a pure function from a record to the changes that
 * make the next one. After the create, every step raises `generation` through `withNext`, but for
 * the return of an earlier version (`rolledBack` in updates.ts).
 */
import type {
  ContainerRecord,
  DesiredState,
  Observation,
  TombstoneRecord,
  Version,
} from '../../../schemas/api/container.ts';
import { metadataToStore } from '../../../schemas/api/fields/container.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { choose, fits } from '../placement.ts';
import { amountsOf, quotaAmountsOf, type TenantView } from '../tenant/state.ts';
import { excessInRegion } from '../tenant/quota.ts';
import { regionsThatMayPull } from '../tenant/registries.ts';
import type { Changes, Effect, EventDraft, FleetHost, TurnContext } from '../turn.ts';
import { movedTo } from './left.ts';
import { updateTo, withoutUpdate } from './updates.ts';
import { shownStatus, unobserved } from './view.ts';

/**
 * The changes of a changed container: clients that wait for it wake up, and its host syncs.
 */
export function changed(
  record: ContainerRecord,
  events: readonly EventDraft[],
  effects: readonly Effect[] = [],
): Changes {
  const doorbell: Effect[] =
    record.placement.phase === 'placed' ? [{ kind: 'doorbell', host: record.placement.host }] : [];
  return {
    records: [record],
    deletes: [],
    events,
    effects: [{ kind: 'changed', tenant: record.tenant, id: record.id }, ...doorbell, ...effects],
  };
}

export const eventOf = (type: EventDraft['type'], container: ContainerRecord, context: TurnContext): EventDraft => ({
  type,
  container,
  status: shownStatus(container, context.fleet).status,
});

export const withNext = (
  record: ContainerRecord,
  context: TurnContext,
  next: Partial<
    Pick<ContainerRecord, 'desired' | 'observed' | 'placement' | 'history' | 'rejections' | 'update' | keyof Version>
  >,
): ContainerRecord => {
  const { cause, ...rest } = record;
  const generation = record.generation + 1;
  // A request that waits for its host is still on its way when the platform places the container.
  const isWaiting = cause?.generation === record.generation && record.observed.status === 'pending';
  const kept = isWaiting ? { cause: { ...cause, generation } } : {};
  return { ...rest, ...kept, ...causedBy(context, generation), ...next, generation, updatedAtMs: context.nowMs };
};

/** The request that makes a generation; empty if no request does. */
export const causedBy = ({ requestId, trace }: TurnContext, generation: number): Pick<ContainerRecord, 'cause'> =>
  requestId === null ? {} : { cause: { generation, requestId, ...(trace === undefined ? {} : { trace }) } };

/** `true` if a host has it, or may have it. */
export function isOnHost(record: ContainerRecord, context: TurnContext): boolean {
  if (record.placement.phase === 'unplaced') return false;
  const condition = context.fleet.condition(record.placement.host);
  return condition !== 'lost' && condition !== 'removed';
}

/** Forgets the explanation that a new attempt replaces, and keeps the counts over attempts. */
export const again = ({ restart_count, volumes }: Observation, status: Observation['status']): Observation => ({
  ...unobserved(status, null),
  restart_count,
  ...(volumes === undefined ? {} : { volumes }),
});

export const rejectionsWith = ({ rejections }: ContainerRecord, host: HostKey, { nowMs }: TurnContext) => [
  ...rejections.filter((rejection) => rejection.host !== host && rejection.atMs + limits.rejectionTtlMs > nowMs),
  { host, atMs: nowMs },
];

/**
 * Above every placement and preparation before it, also of those that were given up: the number
 * tells copies apart.
 */
export const nextSince = ({ generation, placement, preparing }: ContainerRecord): number =>
  Math.max(generation, placement.since ?? 0, preparing?.since ?? 0) + 1;

/** Hosts that refused it recently. */
const refusedBy = (record: ContainerRecord, context: TurnContext) =>
  new Set(record.rejections.filter(({ atMs }) => atMs + limits.rejectionTtlMs > context.nowMs).map(({ host }) => host));

/** The host that it was lost with; `undefined` if it has a host, or was taken off one. */
export const lostWith = ({ placement }: ContainerRecord) =>
  placement.phase === 'unplaced' ? placement.lostWith : undefined;

/**
 * A host for the container among the tenant's regions whose caps have room for it; `undefined` if
 * none fits now.
 */
export function findHost(record: ContainerRecord, tenant: TenantView, context: TurnContext): FleetHost | undefined {
  // Its regions are unknown until its record is repaired.
  if (tenant.settingsDamaged) return undefined;
  const { cpuMillis, memBytes } = amountsOf(record);
  const amounts = quotaAmountsOf(record);
  const leaving = record.placement.phase === 'placed' ? record.placement.region : undefined;
  const regions = regionsThatMayPull(tenant.record, tenant.record.regions, record.spec).filter(
    (region) => region === leaving || excessInRegion(tenant, region, amounts) === undefined,
  );
  const excluded = refusedBy(record, context);
  if (record.placement.phase === 'placed') excluded.add(record.placement.host);
  // It would have to stop there before it starts there.
  if (record.leaving !== undefined) excluded.add(record.leaving.host);
  const need = { id: record.id, cpuMillis, memBytes, ports: amounts.ports, diskBytes: amounts.disk_bytes };
  const lost = lostWith(record);
  const last = lost && context.fleet.host(lost.host);
  // Its copy may still run there.
  const isBack = last?.condition === 'up' && regions.includes(last.region) && !excluded.has(last.key);
  if (isBack && fits(last, need)) return last;
  return choose(context.fleet, regions, need, excluded);
}

/**
 * Every placement raises the generation, and an agent adopts only what was made under its own
 * placement.
 */
export function placeOn(
  record: ContainerRecord,
  host: FleetHost,
  chosenBy: 'tenant' | 'platform',
  context: TurnContext,
) {
  const history = [...record.history.filter((key) => key !== host.key), host.key].slice(-limits.placementHistory);
  const { preparing, silentOn: _, ...rest } = movedTo(record, host.key, context);
  const isPrepared = preparing?.host === host.key && preparing.givenUp === undefined;
  // No other host had it since: the copy there is still the last one.
  const last = lostWith(record);
  const sinceBack = last?.host === host.key ? last.since : undefined;
  return withNext(rest, context, {
    placement: {
      phase: 'placed',
      host: host.key,
      region: host.region,
      since: isPrepared ? preparing.since : (sinceBack ?? nextSince(record)),
      chosenBy,
      atMs: context.nowMs,
    },
    history,
    observed: again(rest.observed, 'pending'),
  });
}

/** Takes a container off its host without a new one: it waits, or rests if it was to be stopped. */
export function unplace(record: ContainerRecord, context: TurnContext): ContainerRecord {
  const { preparing: _preparing, silentOn: _silentOn, ...rest } = movedTo(record, undefined, context);
  const { placement, desired } = record;
  const isLost =
    placement.phase === 'placed' && desired === 'running' && context.fleet.condition(placement.host) === 'lost';
  return withNext(rest, context, {
    placement: {
      phase: 'unplaced',
      atMs: context.nowMs,
      since: nextSince(record),
      ...(isLost ? { lostWith: { host: placement.host, since: placement.since } } : {}),
    },
    observed:
      record.desired === 'running'
        ? { ...again(rest.observed, 'pending'), reason: 'no_host' }
        : again(rest.observed, 'stopped'),
  });
}

/** Places it again, elsewhere; rings the host that it leaves too. */
export function replace(record: ContainerRecord, tenant: TenantView, context: TurnContext): Changes {
  const left: Effect[] = record.placement.phase === 'placed' ? [{ kind: 'doorbell', host: record.placement.host }] : [];
  const host = record.desired === 'running' ? findHost(record, tenant, context) : undefined;
  const next = host === undefined ? unplace(record, context) : placeOn(record, host, 'platform', context);
  return changed(next, [eventOf(host === undefined ? 'unplaced' : 'placed', next, context)], left);
}

/** A container that is not to run needs no copy elsewhere. */
const withoutPreparation = (record: ContainerRecord): ContainerRecord =>
  record.preparing === undefined || record.preparing.givenUp !== undefined
    ? record
    : { ...record, preparing: { ...record.preparing, givenUp: null } };

/** A copy that another host has ready is one of the old version. */
function withUnreadyCopy(record: ContainerRecord): ContainerRecord {
  if (record.preparing?.isReady === undefined) return record;
  const { isReady: _, ...preparing } = record.preparing;
  return { ...record, preparing };
}

/** The end of the last run stays known until a start, if the container should not run. */
const isTriedAgain = ({ desired, observed }: ContainerRecord): boolean =>
  desired === 'running' && observed.status === 'failed';

/** A new version of the container, under a new generation. */
export function updated(record: ContainerRecord, version: Version, context: TurnContext): ContainerRecord {
  const next = updateTo(record, version, context);
  return withNext(withUnreadyCopy(record), context, {
    ...next.version,
    update: next.update,
    // A container that was too large for a host may fit now.
    rejections: [],
    observed: isTriedAgain(record) ? again(record.observed, 'pending') : record.observed,
  });
}

/**
 * `start` and `stop`: a new generation, and at once the status if no agent is there to report it.
 */
export function want(before: ContainerRecord, desired: DesiredState, context: TurnContext): ContainerRecord {
  const record = desired === 'running' ? before : withoutUpdate(withoutPreparation(before), context);
  const { status } = record.observed;
  const onHost = isOnHost(record, context);
  switch (desired) {
    case 'running': {
      const rests = status === 'stopped' || status === 'failed' || !onHost;
      const pending = again(record.observed, 'pending');
      const waiting: Observation = record.placement.phase === 'unplaced' ? { ...pending, reason: 'no_host' } : pending;
      const rejected = record.observed.reason === 'rejected' ? { rejections: [] } : {};
      return withNext({ ...record, startSince: record.generation + 1 }, context, {
        desired,
        observed: rests ? waiting : record.observed,
        ...rejected,
      });
    }
    case 'stopped':
      return withNext(record, context, {
        desired,
        observed: onHost ? record.observed : again(record.observed, 'stopped'),
      });
    case 'removed':
      return withNext(record, context, { desired });
  }
}

/** The tombstone of a container that is gone. */
export function leaveTombstone(record: ContainerRecord, context: TurnContext): Changes {
  const metadata = metadataToStore(record.spec);
  const tombstone: TombstoneRecord = {
    kind: 'tombstone',
    id: record.id,
    tenant: record.tenant,
    name: record.spec.name,
    history: record.history,
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    goneAtMs: context.nowMs,
    ...(typeof record.ipv4 === 'string' ? { ipv4: record.ipv4 } : {}),
    // A key that has ended need not be kept for another week.
    idempotency: (record.idempotency?.untilMs ?? 0) > context.expiryMs ? record.idempotency : null,
  };
  return {
    records: [tombstone],
    deletes: [],
    events: [{ type: 'removed', container: record, status: 'removing' }],
    effects: [{ kind: 'changed', tenant: record.tenant, id: record.id }],
  };
}
