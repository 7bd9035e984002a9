/** The document of a container: read and written whole, in one turn and one generation. Pure. */
import type { ContainerRecord, Version } from '../../../schemas/api/container.ts';
import {
  changeable,
  metadataOf,
  notedNames,
  partNames,
  storedValue,
  usualPullPolicy,
  withKept,
  type ContainerSpec,
  type Noted,
  type Parts,
} from '../../../schemas/api/fields/container.ts';
import { isDefaultPolicy, policyOf, policyShown, textOfPolicy } from '../../../schemas/api/policy.ts';
import { noSecrets, usesIn, usesShown } from '../../../schemas/api/secret.ts';
import { imageNames, plainNames, type Declaration, type SpecPlan, type StoredSpec } from '../../../schemas/api/spec.ts';
import type { FieldErrors } from '../../../schemas/errors.ts';
import type { HostKey, OperationId } from '../../../schemas/ids.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { usesFor } from '../secret/uses.ts';
import type { PartitionView } from '../state.ts';
import { damagedTenant } from '../tenant/decide.ts';
import type { TenantView } from '../tenant/state.ts';
import {
  answer,
  conflict,
  data,
  invalid,
  isSuccess,
  noChanges,
  refuse,
  repeatable,
  type EventDraft,
  type Turn,
  type TurnContext,
} from '../turn.ts';
import { registryRefusal } from '../tenant/registries.ts';
import { create as createContainer, hostFor, mayPullInSome, unknownHost } from './create.ts';
import { change, doorbellOnly, find, placedToRun, refusalToStart, withStagedSecrets } from './decide.ts';
import { changesOf, withMetadata } from './metadata.ts';
import { moveTo, refusalToMove } from './moves.ts';
import { declaredHostOf, moveIn } from './moving.ts';
import { policyUnder } from './policy.ts';
import { changed, eventOf, want, withNext } from './transitions.ts';
import { isSameVersion, lookingAgain, noTag, versionOf } from './updates.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

const pick = <F extends keyof ContainerSpec>(spec: ContainerSpec, names: readonly F[]) =>
  Object.fromEntries(names.map((name) => [name, spec[name]])) as Pick<ContainerSpec, F>;

const partsOf = (spec: ContainerSpec): Parts =>
  Object.fromEntries(partNames.map((name) => [name, storedValue(spec, name)])) as unknown as Parts;

const notedOf = (spec: ContainerSpec): Noted =>
  Object.fromEntries(notedNames.map((name) => [name, storedValue(spec, name)])) as unknown as Noted;

export function specOf(record: ContainerRecord): StoredSpec {
  const { spec, desired } = record;
  return {
    name: spec.name,
    image: pick(spec, imageNames),
    host_key: declaredHostOf(record) ?? null,
    ...pick(spec, plainNames),
    ...partsOf(spec),
    policy: policyShown(policyOf(record)),
    secrets: usesShown(record.secrets ?? noSecrets),
    ...metadataOf(spec),
    ...notedOf(spec),
    desired: desired === 'stopped' ? 'stopped' : 'running',
  };
}

export function get(state: PartitionView, ask: Of<'spec.get'>): Turn {
  const found = find(state, ask);
  return 'refusal' in found ? found.refusal : answer(data('ok', specOf(found.record)));
}

/** Faults of the uses of secrets, where they are in the document. */
const ofSecrets = (faults: FieldErrors): FieldErrors =>
  Object.fromEntries(Object.entries(faults).map(([field, texts]) => [`secrets.${field}`, texts]));

/** The version that a document declares for an existing container. */
function declared(
  tenant: TenantView,
  record: ContainerRecord,
  { spec: given, policy, secrets }: Declaration,
): { readonly faults: FieldErrors } | { readonly version: Version } {
  const uses = usesFor(tenant, record, secrets);
  const faults: FieldErrors = 'faults' in uses ? ofSecrets(uses.faults) : {};
  for (const { path } of record.configFiles)
    if (given.files?.[path] !== undefined) faults[`files.${path}`] = ['is a file that the operator puts there'];
  if (given.name !== record.spec.name) faults['name'] = ["can't be changed"];
  if ('faults' in uses || Object.keys(faults).length > 0) return { faults };
  // An operator's choice stays.
  const { spec: before } = record;
  const pull_policy = before.pull_policy === usualPullPolicy(before) ? given.pull_policy : before.pull_policy;
  const spec = withKept(
    { ...before, ...pick(given, changeable), pull_policy },
    { ...metadataOf(given), ...notedOf(given), ...partsOf(given) },
  );
  return { version: { ...versionOf(record), spec, policy, secrets: uses.secrets } };
}

/**
 * Idempotent: a document that changes nothing makes no new generation. Another host is a move (ADR
 * 32) of the container that the rest of the document makes.
 */
export function put(state: PartitionView, ask: Of<'spec.put'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  if (record.desired === 'removed') return conflict('removing', 'the container is being removed');
  const tenant = state.tenant(ask.tenant);
  const turn = putParts(state, record, ask, context);
  const { host_key } = ask.declaration;
  if (!isSuccess(turn.reply) || host_key === undefined || host_key === declaredHostOf(record)) return turn;
  return movedTo(tenant, { before: record, turn, host: host_key }, context);
}

interface Move {
  readonly before: ContainerRecord;
  /** The turn that the rest of the document makes. */
  readonly turn: Turn;
  readonly host: HostKey;
}

function movedTo(tenant: TenantView, { before, turn, host: key }: Move, context: TurnContext): Turn {
  if (tenant.settingsDamaged) return damagedTenant;
  const host = hostFor(tenant, key, context);
  if (host === 'unheard') return refuse('unavailable');
  if (host === 'unknown') return invalid(unknownHost);
  const changed = turn.changes.records.find((record) => record.kind === 'container') ?? before;
  if (!mayPullInSome(tenant, [host.region], changed.spec)) return invalid(registryRefusal);
  const after: ContainerRecord = {
    ...changed,
    // The platform may have chosen these for it.
    placement: before.placement,
    history: before.history,
    spec: { ...changed.spec, host_key: key },
  };
  const refusal = refusalToMove(after, host, tenant, context);
  if (refusal !== undefined) return refusal;
  const onTop = moveTo(after, host, context);
  // One write is one generation: a placement makes its own, a preparation makes none.
  const isPlaced = onTop.records.some((one) => one.kind === 'container' && one.generation > after.generation);
  const moved = isPlaced ? moveTo({ ...after, generation: before.generation }, host, context) : onTop;
  const next = moved.records.find((one) => one.kind === 'container') ?? after;
  const others = turn.changes.events.filter(({ type }) => type !== 'placed');
  return answer(replyOf(next), { ...moved, events: [...others, ...moved.events] });
}

function putParts(state: PartitionView, record: ContainerRecord, ask: Of<'spec.put'>, context: TurnContext): Turn {
  const tenant = state.tenant(record.tenant);
  const given = declared(tenant, record, ask.declaration);
  if ('faults' in given) return invalid(given.faults);
  const wanted = ask.pull === undefined ? given : lookingAgain(record, given.version);
  if ('faults' in wanted) return invalid(wanted.faults);
  const { version } = wanted;
  const { desired = record.desired } = ask.declaration;

  const fields = { ...metadataOf(version.spec), ...notedOf(version.spec) };
  const beside = withMetadata(record, fields, context);
  const events: EventDraft[] = [...beside.events];
  let next = beside.record;
  if (desired !== record.desired) {
    const asked = want(next, desired, context);
    events.push(eventOf(desired === 'running' ? 'start_requested' : 'stop_requested', asked, context));
    next = asked;
  }
  // One write is one generation.
  const base = { ...next, generation: record.generation };
  if (!isSameVersion(version, versionOf(base))) {
    const turn = change(state, base, version, 'update_requested', context, (shown) => replyOf(shown));
    return { ...turn, changes: { ...turn.changes, events: [...events, ...turn.changes.events] } };
  }
  if (textOfPolicy(version.policy) !== textOfPolicy(policyOf(base))) {
    next = withNext(base, context, { policy: version.policy, ...policyUnder(base, version.policy) });
    events.push(eventOf('policy_changed', next, context));
  }
  if (events.length === 0) return answer(replyOf(record), doorbellOnly(record));
  if (next === beside.record) return answer(replyOf(next), changesOf(beside));
  if (desired === record.desired || desired === 'stopped') return answer(replyOf(next), changed(next, events));
  if (tenant.settingsDamaged) return damagedTenant;
  const refusal = refusalToStart(next, tenant, context);
  if (refusal !== undefined) return refusal;
  const staged = withStagedSecrets(tenant, record.generation, next, context);
  const placed = placedToRun(staged.record, tenant, context);
  return answer(replyOf(placed.record), changed(placed.record, [...events, ...staged.events, ...placed.events]));
}

export function create(state: PartitionView, ask: Of<'spec.create'>, context: TurnContext): Turn {
  const { declaration, idempotency, tenant: name, id, rid, budgetMs, op, pull } = ask;
  const tenant = state.tenant(name);
  const uses = usesFor(tenant, { configFiles: [] }, declaration.secrets);
  if ('faults' in uses) return invalid(ofSecrets(uses.faults));
  const { policy, spec } = declaration;
  if (pull !== undefined && spec.digest !== null) return invalid(noTag);
  return createContainer(
    state,
    {
      ...{ tenant: name, id, rid, budgetMs, op, idempotency, spec: pull === undefined ? spec : { ...spec, repull: 1 } },
      ...(declaration.desired === 'stopped' ? { stopped: true as const } : {}),
      ...(isDefaultPolicy(policy) ? {} : { policy }),
      ...(usesIn(uses.secrets).length === 0 ? {} : { secrets: uses.secrets }),
    },
    context,
  );
}

/** The result of a write, from its turn without taking the changes. */
export function plan(state: PartitionView, ask: Of<'spec.plan'>, context: TurnContext): Turn {
  const before = state.tenant(ask.tenant).containers.get(ask.id);
  const write = { ...ask, op: '' as OperationId, idempotency: null };
  const turn =
    ask.isNew === true
      ? create(state, { ...write, type: 'spec.create' }, context)
      : put(state, { ...write, type: 'spec.put' }, context);
  if (!isSuccess(turn.reply)) return { reply: turn.reply, changes: noChanges };
  const after = turn.changes.records.find((record): record is ContainerRecord => record.kind === 'container') ?? before;
  if (after === undefined) throw new Error('a plan without a container');
  const spec = specOf(after);
  const old = before === undefined ? undefined : specOf(before);
  const changed = partNamesOf(spec).filter((name) => JSON.stringify(spec[name]) !== JSON.stringify(old?.[name]));
  const isReplaced = before !== undefined && !isSameVersion(versionOf(before), versionOf(after));
  const move = before === undefined ? undefined : moveIn(before, after);
  const action =
    before === undefined
      ? 'create'
      : isReplaced || move !== undefined
        ? 'replace'
        : changed.length > 0
          ? 'change'
          : 'none';
  const planned: SpecPlan = { action, changed, ...(move === undefined ? {} : { move }) };
  return answer({ code: 'ok', body: JSON.stringify({ data: spec, plan: planned }) });
}

const partNamesOf = (spec: StoredSpec) => Object.keys(spec) as (keyof StoredSpec)[];

const replyOf = (record: ContainerRecord) => repeatable('ok', specOf(record));
