/** Decides what tenants and operators ask of a container. Pure: see turn.ts. */
import type { ContainerRecord, Version } from '../../../schemas/api/container.ts';
import { hasLabel } from '../../../schemas/api/fields/container.ts';
import { policyOf } from '../../../schemas/api/policy.ts';
import { noSecrets, textOfUses } from '../../../schemas/api/secret.ts';
import type { ContainerId, Region, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { ContainerTrace } from '../../../schemas/wire/answers.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { withStaged } from '../secret/versions.ts';
import { page } from '../page.ts';
import { amountsOf, quotaAmountsOf, type TenantView } from '../tenant/state.ts';
import type { PartitionView } from '../state.ts';
import { damagedTenant } from '../tenant/decide.ts';
import { excessInRegion, excessInTenant, refuseExcess, type Excess } from '../tenant/quota.ts';
import { registryRefusal } from '../tenant/registries.ts';
import {
  answer,
  conflict,
  data,
  invalid,
  noChanges,
  refuse,
  type EventDraft,
  type Reply,
  type Turn,
  type TurnContext,
} from '../turn.ts';
import { joining, mayPullInSome, reply } from './create.ts';
import { moveUpdate } from './moves.ts';
import { preparationOf } from './moving.ts';
import {
  leaveTombstone,
  changed,
  eventOf,
  findHost,
  isOnHost,
  placeOn,
  updated,
  want,
  withNext,
} from './transitions.ts';
import {
  isSameButLook,
  isSameVersion,
  isUpdating,
  lookingAgain,
  patched,
  versionOf,
  withPullPolicy,
} from './updates.ts';
import { containerJson, containerStatusView, containerView, shownStatus } from './view.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

/** The body of a remembered outcome, rebuilt; `undefined` if the container is gone by now. */
export function bodyAgain(state: PartitionView, tenant: TenantId, id: ContainerId, context: TurnContext) {
  const record = state.tenant(tenant).containers.get(id);
  return record === undefined ? undefined : `{"data":${containerJson(record, context.fleet)}}`;
}

/**
 * The container that an ask names, or the refusal that takes its place. A tenant reaches only its
 * own (invariant A6).
 */
export function find(
  state: PartitionView,
  ask: { readonly tenant: TenantId; readonly id: ContainerId },
): { readonly record: ContainerRecord } | { readonly refusal: Turn } {
  const tenant = state.tenant(ask.tenant);
  const record = tenant.containers.get(ask.id);
  if (record !== undefined) return { record };
  return {
    refusal: tenant.damaged.has(ask.id)
      ? refuse('internal', 'the record of this container is damaged; contact support with the request id')
      : refuse('not_found'),
  };
}

/** Idempotent. A failed container, or one in back-off, is tried at once: its generation rises. */
export function start(state: PartitionView, ask: Of<'container.start'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  if (record.desired === 'removed') return conflict('removing', 'the container is being removed');
  const waits = record.observed.status === 'failed' || record.observed.status === 'backoff';
  if (record.desired === 'running' && !waits) return answer(reply('ok', record, context), doorbellOnly(record));
  const tenant = state.tenant(ask.tenant);
  if (tenant.settingsDamaged) return damagedTenant;
  const refusal = refusalToStart(record, tenant, context);
  if (refusal !== undefined) return refusal;
  const wanted = want(record, 'running', context);
  const asked = eventOf('start_requested', wanted, context);
  const staged = withStagedSecrets(tenant, record.generation, wanted, context);
  const { record: next, events } = placedToRun(staged.record, tenant, context);
  return answer(reply('ok', next, context), changed(next, [asked, ...staged.events, ...events]));
}

/**
 * A container that starts now, with the values that wait for that. One write is one generation.
 * @param generation before the write
 */
export function withStagedSecrets(
  tenant: TenantView,
  generation: number,
  record: ContainerRecord,
  context: TurnContext,
): { readonly record: ContainerRecord; readonly events: readonly EventDraft[] } {
  const version = versionOf(record);
  const secrets = withStaged(tenant, record, version.secrets);
  if (textOfUses(secrets) === textOfUses(version.secrets)) return { record, events: [] };
  const next = updated({ ...record, generation }, { ...version, secrets }, context);
  return { record: next, events: [eventOf('secret_changed', next, context)] };
}

/** A container that is to run: with a host, if it has none and there is one. */
export function placedToRun(
  record: ContainerRecord,
  tenant: TenantView,
  context: TurnContext,
): { readonly record: ContainerRecord; readonly events: readonly EventDraft[] } {
  const isMovable = record.placement.phase === 'unplaced' || record.placement.chosenBy === 'platform';
  const host = isMovable && !isOnHost(record, context) ? findHost(record, tenant, context) : undefined;
  if (host === undefined) return { record, events: [] };
  const placed = placeOn(record, host, 'platform', context);
  return { record: placed, events: [eventOf('placed', placed, context)] };
}

/** A container may start where its image may be pulled; otherwise the refusal. */
export const refusalToStart = (
  record: ContainerRecord,
  tenant: TenantView,
  context: TurnContext,
  spec: ContainerRecord['spec'] = record.spec,
): Turn | undefined =>
  mayPullInSome(tenant, regionsToStartIn(record, tenant, context), spec) ? undefined : invalid(registryRefusal);

/** Its host's region; any of the tenant's regions if the platform chooses the host. */
const regionsToStartIn = (record: ContainerRecord, tenant: TenantView, context: TurnContext): readonly Region[] =>
  record.placement.phase === 'placed' && (isOnHost(record, context) || record.placement.chosenBy === 'tenant')
    ? [record.placement.region]
    : tenant.record.regions;

/** Idempotent. */
export function stop(state: PartitionView, ask: Of<'container.stop'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  if (record.desired === 'removed') return conflict('removing', 'the container is being removed');
  if (record.desired === 'stopped') return answer(reply('ok', record, context), doorbellOnly(record));
  const next = want(record, 'stopped', context);
  return answer(reply('ok', next, context), changed(next, [eventOf('stop_requested', next, context)]));
}

/** Changes nothing, and still rings the doorbell: setting a desired state re-actuates. */
export const doorbellOnly = (record: ContainerRecord) => ({
  ...noChanges,
  effects: record.placement.phase === 'placed' ? [{ kind: 'doorbell' as const, host: record.placement.host }] : [],
});

/** Removes a container: it is gone when its host confirms, or at once if no host can have it. */
export function remove(state: PartitionView, ask: Of<'container.delete'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  if (record.desired === 'removed') return answer(reply('accepted', record, context), doorbellOnly(record));
  const { next, changes } = removal(record, context);
  if (isOnHost(record, context)) return answer(reply('accepted', next, context), changes);
  // The record is gone with this turn: the answer is remembered by its body, not by its id.
  return answer(data('accepted', containerView(next, 'removing')), changes);
}

/** A removal, asked for by a tenant or by the policy of a job that has ended. */
export function removal(record: ContainerRecord, context: TurnContext) {
  const next = want(record, 'removed', context);
  const requested = changed(next, [eventOf('delete_requested', next, context)]);
  if (isOnHost(record, context)) return { next, changes: requested };
  const gone = leaveTombstone(next, context);
  return { next, changes: { ...gone, events: [...requested.events, ...gone.events] } };
}

/** Idempotent: a patch that changes nothing makes no new generation. */
export function update(state: PartitionView, ask: Of<'container.update'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  if (record.desired === 'removed') return conflict('removing', 'the container is being removed');
  const after = patched(record.spec, ask.patch);
  if (!after.ok) return invalid(after.faults);
  const given = { ...versionOf(record), spec: after.spec };
  const wanted = ask.pull === undefined ? { version: given } : lookingAgain(record, given);
  return 'faults' in wanted
    ? invalid(wanted.faults)
    : change(state, record, wanted.version, 'update_requested', context);
}

/** The operator's fields change what runs, as an update does. */
export function operate(state: PartitionView, ask: Of<'container.operate'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  if (record.desired === 'removed') return conflict('removing', 'the container is being removed');
  const { pull_policy, secret_refs, config_files } = ask.fields;
  const taken = config_files?.find(({ path }) => Object.hasOwn(record.secrets?.files ?? {}, path));
  if (taken !== undefined) return invalid({ config_files: [`${taken.path} is the file of a secret of the tenant`] });
  const declared = config_files?.find(({ path }) => record.spec.files?.[path] !== undefined);
  if (declared !== undefined) return invalid({ config_files: [`${declared.path} is a file of the tenant's document`] });
  const version: Version = {
    ...versionOf(record),
    spec: { ...record.spec, pull_policy: pull_policy ?? record.spec.pull_policy },
    secretRefs: secret_refs ?? record.secretRefs,
    configFiles: config_files ?? record.configFiles,
  };
  return change(state, record, version, 'operator_changed', context);
}

/**
 * Caps, registries and room are checked, and the update begins, in this one turn.
 * @param show makes the answer to the client
 */
export function change(
  state: PartitionView,
  record: ContainerRecord,
  version: Version,
  event: EventDraft['type'],
  context: TurnContext,
  show: (record: ContainerRecord) => Reply = (shown) => reply('ok', shown, context),
): Turn {
  const tenant = state.tenant(record.tenant);
  if (tenant.settingsDamaged) return damagedTenant;
  const isSame = isSameVersion(version, versionOf(record));
  if (isSame && version.spec.pull_policy === record.spec.pull_policy) return answer(show(record), doorbellOnly(record));
  if (isSame) {
    const { spec } = version;
    const next = withNext(record, context, { spec, ...withPullPolicy(record, spec.pull_policy) });
    return answer(show(next), changed(next, [eventOf(event, next, context)]));
  }
  const refusal = refusalToStart(record, tenant, context, version.spec);
  if (refusal !== undefined) return refusal;
  // A look at its tag alone may leave a run that may not come again as it is.
  const isKept = policyOf(record).restart === 'never' && isSameButLook(version, versionOf(record));
  const secrets = isKept ? version.secrets : withStaged(tenant, record, version.secrets);
  const { spec, ...address } = joining(state, record.tenant, version.spec, record, context);
  const next = { ...updatedBy(event, record, { ...version, spec, secrets }, context), ...address };
  const over = excessOfUpdate(tenant, record, next);
  if (over !== undefined) return refuseExcess(over);
  const events = [eventOf(event, next, context)];
  if (hasRoomFor(record, next, context)) return answer(show(next), changed(next, events));
  const moving = moveUpdate(next, tenant, context);
  if (moving === undefined) {
    return conflict('no_host', 'no host has room for the container with these limits; the container was not changed');
  }
  return answer(show(moving.record), {
    ...moving.changes,
    events: [...events, ...moving.changes.events],
  });
}

/**
 * Fields that only an operator sets are no part of an update that may fail: a rollback keeps them.
 */
function updatedBy(event: EventDraft['type'], record: ContainerRecord, version: Version, context: TurnContext) {
  const next = updated(record, version, context);
  return event === 'operator_changed' ? { ...next, ...withPullPolicy(next, version.spec.pull_policy) } : next;
}

/** The cap that the update would exceed; an update that takes no more exceeds none. */
function excessOfUpdate(tenant: TenantView, record: ContainerRecord, next: ContainerRecord): Excess | undefined {
  const [before, after] = [quotaAmountsOf(record), quotaAmountsOf(next)];
  const more = {
    cpu_millis: Math.max(0, after.cpu_millis - before.cpu_millis),
    mem_bytes: Math.max(0, after.mem_bytes - before.mem_bytes),
    ports: Math.max(0, after.ports - before.ports),
  };
  const over = excessInTenant(tenant, more);
  if (over !== undefined || record.placement.phase === 'unplaced') return over;
  return excessInRegion(tenant, record.placement.region, more);
}

/**
 * `true` if the host that makes the new version has room for its additional resources: the host of
 * the placement, or the one that prepares the container for a move.
 */
function hasRoomFor(record: ContainerRecord, next: ContainerRecord, context: TurnContext): boolean {
  if (record.placement.phase === 'unplaced') return true;
  const host = context.fleet.host(preparationOf(record)?.host ?? record.placement.host);
  // A host that reports no capacity decides by itself.
  if (host === undefined || host.capacity === null) return true;
  const [before, after] = [amountsOf(record), amountsOf(next)];
  const [cpuMillis, memBytes] = [after.cpuMillis - before.cpuMillis, after.memBytes - before.memBytes];
  return (
    (cpuMillis <= 0 || host.used.cpu_millis + cpuMillis <= host.capacity.cpu_millis) &&
    (memBytes <= 0 || host.used.mem_bytes + memBytes <= host.capacity.mem_bytes) &&
    (host.freePorts === null || morePorts(record, next) <= host.freePorts)
  );
}

/** While the old version runs, it keeps its published ports: other ones are needed beside them. */
function morePorts({ spec: before }: ContainerRecord, next: ContainerRecord): number {
  const { ports } = next.spec;
  if (JSON.stringify(ports) === JSON.stringify(before.ports)) return 0;
  return isUpdating(next) ? ports.length : Math.max(0, ports.length - before.ports.length);
}

export function get(state: PartitionView, ask: Of<'container.get'>, context: TurnContext): Turn {
  const found = find(state, ask);
  return 'refusal' in found ? found.refusal : answer(reply('ok', found.record, context));
}

export function status(state: PartitionView, ask: Of<'container.status'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  return answer(data('ok', containerStatusView(found.record, context, state.inMemory(ask.id))));
}

export function trace(state: PartitionView, ask: Of<'container.trace'>): Turn {
  const tenant = state.tenant(ask.tenant);
  const record = tenant.containers.get(ask.id) ?? tenant.tombstones.get(ask.id);
  if (record === undefined) return refuse('not_found');
  const value: ContainerTrace = { history: record.history, gone: record.kind === 'tombstone' };
  return answer(data('ok', value));
}

export function inspect(state: PartitionView, ask: Of<'container.inspect'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  return answer(
    data('ok', {
      container: containerView(record, shownStatus(record, context.fleet).status),
      status: containerStatusView(record, context, state.inMemory(record.id)),
      secret_refs: record.secretRefs,
      config_files: record.configFiles,
      secrets: record.secrets ?? noSecrets,
      reconciler: {
        placement: record.placement,
        history: record.history,
        rejections: record.rejections,
        observed: record.observed,
        observed_order: record.observedOrder,
      },
    }),
  );
}

/** A hundred environments of 64 KiB are more than one message holds. */
export const list = (state: PartitionView, ask: Of<'container.list'>, context: TurnContext): Turn =>
  page(state.tenant(ask.tenant).containers, {
    ...ask,
    maxBytes: limits.answerPartBytes,
    render: (record) => containerJson(record, context.fleet),
    matches: ({ spec }) => hasLabel(spec, ask.labels),
  });
