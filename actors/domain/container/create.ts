/** Creates containers: a name, a host, the caps, a place in the network. Pure: see turn.ts. */
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import type { ContainerSpec } from '../../../schemas/api/fields/container.ts';
import type { FieldErrors } from '../../../schemas/errors.ts';
import type { HostKey, Region, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { answerTo, createdBy, usedByAnother } from '../answers/alive.ts';
import { isInNetwork, isMember } from '../members.ts';
import { insertionMs } from '../order.ts';
import type { PartitionView } from '../state.ts';
import { damagedTenant } from '../tenant/decide.ts';
import { excessInRegion, excessInTenant, refuseExcess, type Excess } from '../tenant/quota.ts';
import { regionsThatMayPull, registryRefusal } from '../tenant/registries.ts';
import { tooManyContainersGone } from '../tenant/remembered.ts';
import { quotaAmountsOf, type TenantView } from '../tenant/state.ts';
import { answer, conflict, invalid, refuse, type FleetHost, type Reply, type Turn, type TurnContext } from '../turn.ts';
import { causedBy, changed, eventOf, findHost, placeOn } from './transitions.ts';
import { containerJson, unobserved } from './view.ts';

export const unknownHost: FieldErrors = { host_key: ['is not a host in an allocated region'] };

/** The answer to a client that shows a container. */
export const reply = (code: 'ok' | 'created' | 'accepted', record: ContainerRecord, context: TurnContext): Reply => ({
  code,
  body: `{"data":${containerJson(record, context.fleet)}}`,
  repeat: { kind: 'container', tenant: record.tenant, id: record.id },
});

/** A create, with the parts that its document has beside the fields of a container. */
export type Creation = Omit<Extract<Ask, { type: 'container.create' }>, 'type'> &
  Partial<Pick<ContainerRecord, 'policy' | 'secrets'>>;

function newRecord(state: PartitionView, ask: Creation, tenant: TenantView, context: TurnContext): ContainerRecord {
  const { policy, secrets } = ask;
  const insertedAtMs = insertionMs(tenant.newest, ask.id, context.nowMs);
  return {
    kind: 'container',
    id: ask.id,
    tenant: ask.tenant,
    ...joining(state, ask.tenant, ask.spec, undefined, context),
    secretRefs: [],
    configFiles: [],
    diskBytes: limits.containerDiskBytes,
    ...(policy === undefined ? {} : { policy }),
    ...(secrets === undefined ? {} : { secrets }),
    desired: ask.stopped === true ? 'stopped' : 'running',
    generation: 1,
    ...(ask.stopped === true ? {} : { startSince: 1 }),
    ...causedBy(context, 1),
    placement: { phase: 'unplaced' },
    history: [],
    rejections: [],
    observed: unobserved(ask.stopped === true ? 'stopped' : 'pending', null),
    observedOrder: { generation: 0, session: 0, seq: 0 },
    observedAtMs: null,
    insertedAtMs,
    updatedAtMs: insertedAtMs,
    idempotency:
      ask.idempotency === null ? null : { ...ask.idempotency, untilMs: context.nowMs + limits.idempotencyTtlMs },
  };
}

type Where =
  | { readonly kind: 'host'; readonly host: FleetHost; readonly chosenBy: 'tenant' | 'platform' }
  | { readonly kind: 'nowhere' }
  | { readonly kind: 'excess'; readonly excess: Excess };

/**
 * A region's caps are checked where the container is placed; one without a host counts under `*`
 * alone.
 */
function whereTo(
  record: ContainerRecord,
  pinned: FleetHost | undefined,
  tenant: TenantView,
  context: TurnContext,
): Where {
  const amounts = quotaAmountsOf(record);
  const overTenant = excessInTenant(tenant, amounts);
  if (overTenant !== undefined) return { kind: 'excess', excess: overTenant };
  if (pinned !== undefined) {
    const over = excessInRegion(tenant, pinned.region, amounts);
    return over === undefined ? { kind: 'host', host: pinned, chosenBy: 'tenant' } : { kind: 'excess', excess: over };
  }
  const host = findHost(record, tenant, context);
  if (host !== undefined) return { kind: 'host', host, chosenBy: 'platform' };
  const overs = regionsThatMayPull(tenant.record, tenant.record.regions, record.spec).map((region) =>
    excessInRegion(tenant, region, amounts),
  );
  const [first] = overs;
  return first !== undefined && overs.every((over) => over !== undefined)
    ? { kind: 'excess', excess: first }
    : { kind: 'nowhere' };
}

/** Name, host, quota and idempotency are checked, and all is written, in this one turn. */
export function create(state: PartitionView, ask: Creation, context: TurnContext): Turn {
  const tenant = state.tenant(ask.tenant);
  if (tenant.settingsDamaged) return damagedTenant;
  const earlier = ask.idempotency === null ? undefined : earlierCreate(tenant, ask.idempotency, context);
  if (earlier !== undefined) return earlier;
  const tooMany = tooManyContainersGone(tenant, context);
  if (tooMany !== undefined) return tooMany;

  const faults: FieldErrors = {};
  if (tenant.names.has(ask.spec.name)) faults['name'] = ['has already been taken'];
  const asked = ask.spec.host_key === null ? undefined : hostFor(tenant, ask.spec.host_key, context);
  if (asked === 'unheard') return refuse('unavailable');
  if (asked === 'unknown') Object.assign(faults, unknownHost);
  const pinned = typeof asked === 'object' ? asked : undefined;
  // An unknown host has no known region: then only the host is named as the fault.
  if (asked !== 'unknown') {
    const regions = pinned === undefined ? tenant.record.regions : [pinned.region];
    if (!mayPullInSome(tenant, regions, ask.spec)) Object.assign(faults, registryRefusal);
  }
  if (Object.keys(faults).length > 0) return invalid(faults);

  const declared = newRecord(state, ask, tenant, context);
  const where = whereTo(declared, pinned, tenant, context);
  switch (where.kind) {
    case 'excess':
      return refuseExcess(where.excess);
    case 'nowhere': {
      const waiting = declared.desired === 'running' ? { observed: unobserved('pending', 'no_host') } : {};
      const record = { ...declared, ...waiting };
      return answer(reply('created', record, context), changed(record, [eventOf('created', record, context)]));
    }
    case 'host': {
      const placed = placeOn(declared, where.host, where.chosenBy, context);
      const record = declared.desired === 'running' ? placed : { ...placed, observed: declared.observed };
      const events = [eventOf('created', declared, context), eventOf('placed', record, context)];
      return answer(reply('created', record, context), changed(record, events));
    }
  }
}

/**
 * A version that is about to be declared, marked as in the network of its tenant or left out of it;
 * and an address, if it is a member now and has none. The turn that makes the version decides this,
 * and the declaration keeps it. So it costs one comparison, all owners give the same answer, and a
 * member that goes changes nothing about another one: by the order of ids, each removal would let
 * the next container in, whose host made it without the network.
 * @param before the container until now; `undefined` if it is created
 */
export function joining(
  state: PartitionView,
  tenant: TenantId,
  spec: ContainerSpec,
  before: ContainerRecord | undefined,
  context: TurnContext,
): Pick<ContainerRecord, 'spec' | 'ipv4'> {
  const { leftOut: _, ...given } = spec;
  if (!isInNetwork(given)) return { spec: given };
  const isIn = before !== undefined && isMember(before);
  if (!isIn && state.tenant(tenant).members >= limits.networkMembers) return { spec: { ...given, leftOut: true } };
  const slice = context.tenantIpv4?.sliceOf(tenant);
  if (slice === undefined || typeof before?.ipv4 === 'string') return { spec: given };
  return { spec: given, ipv4: state.nextIpv4(slice, context.expiryMs) ?? null };
}

/**
 * The host that a tenant names. `unheard`: no process knows it yet, which does not prove that there
 * is none.
 */
export function hostFor(
  { record }: TenantView,
  key: HostKey,
  { fleet }: TurnContext,
): FleetHost | 'unknown' | 'unheard' {
  const host = fleet.host(key);
  const isKnown = host !== undefined && host.condition !== 'removed' && host.condition !== 'fenced';
  if (isKnown && record.regions.includes(host.region)) return host;
  return fleet.condition(key) === 'unheard' ? 'unheard' : 'unknown';
}

/**
 * `true` if the image may be pulled in one of the regions. A tenant without regions gets an error
 * about these, not about registries.
 */
export const mayPullInSome = (
  { record }: TenantView,
  regions: readonly Region[],
  spec: ContainerRecord['spec'],
): boolean => regions.length === 0 || regionsThatMayPull(record, regions, spec).length > 0;

function earlierCreate(
  tenant: TenantView,
  { key, bodyHash }: { key: string; bodyHash: string },
  context: TurnContext,
): Turn | undefined {
  if (answerTo(tenant, key, context) !== undefined) return usedByAnother;
  const record = createdBy(tenant, key, context);
  if (record === undefined) return undefined;
  if (record.idempotency.bodyHash !== bodyHash) return usedByAnother;
  return record.kind === 'tombstone'
    ? conflict('key_used', 'the container that was created with this key no longer exists')
    : answer(reply('created', record, context));
}
