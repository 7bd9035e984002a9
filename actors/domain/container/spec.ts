/** The document of a container: read and written whole, in one turn and one generation. Pure. */
import type { ContainerRecord, Version } from '../../../schemas/api/container.ts';
import {
  changeable,
  metadataOf,
  partNames,
  storedValue,
  usualPullPolicy,
  withKept,
  type ContainerSpec,
  type Parts,
} from '../../../schemas/api/fields/container.ts';
import { isDefaultPolicy, policyOf, policyShown, textOfPolicy } from '../../../schemas/api/policy.ts';
import { noSecrets, usesIn } from '../../../schemas/api/secret.ts';
import { imageNames, plainNames, type Declaration, type Spec, type SpecPlan } from '../../../schemas/api/spec.ts';
import type { FieldErrors } from '../../../schemas/errors.ts';
import type { OperationId } from '../../../schemas/ids.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { usesFor, usesShown } from '../secret/uses.ts';
import type { PartitionView } from '../state.ts';
import { damagedTenant } from '../tenant/decide.ts';
import type { TenantView } from '../tenant/state.ts';
import {
  answer,
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
import { change, create as createContainer, find, placedToRun, refusalToStart, doorbellOnly } from './decide.ts';
import { changesOf, withMetadata } from './metadata.ts';
import { policyUnder } from './policy.ts';
import { changed, eventOf, want, withNext } from './transitions.ts';
import { isSameVersion, versionOf } from './updates.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

const pick = <F extends keyof ContainerSpec>(spec: ContainerSpec, names: readonly F[]) =>
  Object.fromEntries(names.map((name) => [name, spec[name]])) as Pick<ContainerSpec, F>;

const partsOf = (spec: ContainerSpec): Parts =>
  Object.fromEntries(partNames.map((name) => [name, storedValue(spec, name)])) as unknown as Parts;

export function specOf(record: ContainerRecord): Spec {
  const { spec, placement, desired } = record;
  return {
    name: spec.name,
    image: pick(spec, imageNames),
    host_key: placement.phase === 'placed' ? placement.host : null,
    ...pick(spec, plainNames),
    ...partsOf(spec),
    policy: policyShown(policyOf(record)),
    secrets: usesShown(record.secrets ?? noSecrets),
    ...metadataOf(spec),
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

/** What a document declares of a container that is there. */
function declared(
  tenant: TenantView,
  record: ContainerRecord,
  { spec: given, policy, secrets, host_key }: Declaration,
): { readonly faults: FieldErrors } | { readonly version: Version } {
  const uses = usesFor(tenant, record, secrets);
  const faults: FieldErrors = 'faults' in uses ? ofSecrets(uses.faults) : {};
  if (given.name !== record.spec.name) faults['name'] = ["can't be changed"];
  const { placement } = record;
  if (host_key !== undefined && (placement.phase === 'unplaced' || placement.host !== host_key))
    faults['host_key'] = ["can't be changed: leave it out, and the container stays where it is"];
  if ('faults' in uses || Object.keys(faults).length > 0) return { faults };
  // An operator's choice stays.
  const { spec: before } = record;
  const pull_policy = before.pull_policy === usualPullPolicy(before) ? given.pull_policy : before.pull_policy;
  const spec = withKept(
    { ...before, ...pick(given, changeable), pull_policy },
    { ...metadataOf(given), ...partsOf(given) },
  );
  return { version: { ...versionOf(record), spec, policy, secrets: uses.secrets } };
}

/** Idempotent: a document that changes nothing makes no new generation. */
export function put(state: PartitionView, ask: Of<'spec.put'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  if (record.desired === 'removed') return refuse('conflict', 'the container is being removed');
  const tenant = state.tenant(ask.tenant);
  const wanted = declared(tenant, record, ask.declaration);
  if ('faults' in wanted) return invalid(wanted.faults);
  const { version } = wanted;
  const { desired = record.desired } = ask.declaration;

  const beside = withMetadata(record, metadataOf(version.spec), context);
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
    const turn = change(tenant, base, version, 'update_requested', context, (shown) => replyOf(shown));
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
  const placed = placedToRun(next, tenant, context);
  return answer(replyOf(placed.record), changed(placed.record, [...events, ...placed.events]));
}

export function create(state: PartitionView, ask: Of<'spec.create'>, context: TurnContext): Turn {
  const { declaration, idempotency, tenant: name, id, rid, budgetMs, op } = ask;
  const tenant = state.tenant(name);
  const uses = usesFor(tenant, { configFiles: [] }, declaration.secrets);
  if ('faults' in uses) return invalid(ofSecrets(uses.faults));
  const { policy } = declaration;
  return createContainer(
    state,
    {
      ...{ tenant: name, id, rid, budgetMs, op, idempotency, spec: declaration.spec },
      ...(declaration.desired === 'stopped' ? { stopped: true as const } : {}),
      ...(isDefaultPolicy(policy) ? {} : { policy }),
      ...(usesIn(uses.secrets).length === 0 ? {} : { secrets: uses.secrets }),
    },
    context,
  );
}

/** What the write would do, by making its turn and taking none of its changes. */
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
  const action = before === undefined ? 'create' : isReplaced ? 'replace' : changed.length > 0 ? 'change' : 'none';
  const planned: SpecPlan = { action, changed };
  return answer({ code: 'ok', body: JSON.stringify({ data: spec, plan: planned }) });
}

const partNamesOf = (spec: Spec) => Object.keys(spec) as (keyof Spec)[];

const replyOf = (record: ContainerRecord) => repeatable('ok', specOf(record));
