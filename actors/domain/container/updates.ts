/**
 * Updates a container to another version while it runs (ADR 35).
 *
 * 1. *Preparing*: the old version runs on; its host pulls the image of the new one and makes it.
 * 2. *Verifying*: the host has swapped them, and the new one must stay up.
 * 3. *Done*: the old one goes. Or *rolled back*: the host runs the old one again, and the record
 *    takes its declaration back.
 *
 * The host swaps, and judges the new version, so that neither waits for the control plane. Pure.
 */
import {
  isLooping,
  type Changed,
  type ContainerRecord,
  type Observation,
  type Reason,
  type Update,
  type UpdateView,
  type Version,
} from '../../../schemas/api/container.ts';
import {
  canonicalText,
  changeable,
  fieldOf,
  storedValue,
  usualPullPolicy,
  usualTag,
  versioned,
  type ChangeableName,
  type ContainerPatch,
  type ContainerSpec,
  type PullPolicy,
  type VersionedName,
} from '../../../schemas/api/fields/container.ts';
import { isSameForEngine, policyOf, policyShown } from '../../../schemas/api/policy.ts';
import { noSecrets, textOfUses } from '../../../schemas/api/secret.ts';
import type { FieldErrors } from '../../../schemas/errors.ts';
import { limits } from '../../../schemas/limits.ts';
import { withoutControls } from '../../../schemas/visible.ts';
import type { ReportItem } from '../../../schemas/wire/host.ts';
import type { TurnContext } from '../turn.ts';
import { upMs } from './runs.ts';

/** The version that runs until the new one does; `undefined` if no update is under way. */
export const previousOf = ({ update }: ContainerRecord): Version | undefined => update?.previous;

export const isUpdating = (record: ContainerRecord): boolean => previousOf(record) !== undefined;

export const versionOf = (record: ContainerRecord): Version => ({
  spec: record.spec,
  secretRefs: record.secretRefs,
  configFiles: record.configFiles,
  policy: policyOf(record),
  secrets: record.secrets ?? noSecrets,
});

/** The declaration with the patch applied (RFC 7396), or the faults of the patch. */
export function patched(
  spec: ContainerSpec,
  patch: ContainerPatch,
): { readonly ok: true; readonly spec: ContainerSpec } | { readonly ok: false; readonly faults: FieldErrors } {
  const merged = changeable.map((name) => [name, patchedField(spec, patch, name)] as const);
  const faults: FieldErrors = {};
  const { digest } = { ...spec, ...patch };
  if (typeof patch.tag === 'string' && patch.digest === undefined && digest !== null)
    faults['digest'] = ['decides what runs, whatever the tag: set it to null to run the tag'];
  // The gateway has checked each value of the patch.
  for (const [name, value] of merged) {
    const wrong = patch[name] === undefined ? [] : fieldOf(name).faultsOf(value);
    if (wrong.length > 0) faults[name] = [...wrong];
  }
  if (Object.keys(faults).length > 0) return { ok: false, faults };
  const next = { ...spec, ...(Object.fromEntries(merged) as Pick<ContainerSpec, ChangeableName>) };
  const image = { tag: usualTag(next), digest: next.digest };
  // An operator's choice stays.
  const pull_policy = spec.pull_policy === usualPullPolicy(spec) ? usualPullPolicy(image) : spec.pull_policy;
  return { ok: true, spec: { ...next, ...image, pull_policy } };
}

function patchedField(spec: ContainerSpec, patch: ContainerPatch, name: ChangeableName): unknown {
  const { merged, fallback } = fieldOf(name);
  const given = patch[name];
  return given === undefined ? spec[name] : given === null ? fallback : merged(spec[name], given);
}

const textOf = (spec: ContainerSpec, name: VersionedName): string => canonicalText(name, storedValue(spec, name));

const differing = (one: ContainerSpec, other: ContainerSpec) =>
  versioned.filter((field) => textOf(one, field) !== textOf(other, field));

/** `true` if the engine's container would be the same. */
export const isSameVersion = (one: Version, other: Version): boolean =>
  differing(one.spec, other.spec).length === 0 &&
  one.spec.repull === other.spec.repull &&
  isSameForEngine(one.policy, other.policy) &&
  haveSameSecrets(one, other) &&
  JSON.stringify([one.secretRefs, one.configFiles]) === JSON.stringify([other.secretRefs, other.configFiles]);

/** `true` if the only difference may be another look at what their tag names. */
export const isSameButLook = (one: Version, { spec: { repull: _, ...spec }, ...other }: Version): boolean => {
  const { repull: __, ...ofOne } = one.spec;
  return isSameVersion({ ...one, spec: ofOne }, { ...other, spec });
};

export const noTag: FieldErrors = { pull: ['has no tag to look at: the digest decides what runs'] };

/** The version with another look at what its tag names, or the fault of asking for that. */
export function lookingAgain(
  { generation }: ContainerRecord,
  version: Version,
): { readonly faults: FieldErrors } | { readonly version: Version } {
  const { spec } = version;
  if (spec.digest !== null) return { faults: noTag };
  return { version: { ...version, spec: { ...spec, repull: generation + 1 } } };
}

/**
 * A version that changes something else ends a look that was asked for before, unless the version
 * that it is for has yet to run.
 */
function withoutLook({ spec: before, update }: ContainerRecord, version: Version): Version {
  const { repull, ...spec } = version.spec;
  const isDue = update?.previous !== undefined || update?.unproven !== undefined;
  return repull === undefined || repull !== before.repull || isDue ? version : { ...version, spec };
}

const haveSameSecrets = (one: Version, other: Version): boolean =>
  textOfUses(one.secrets) === textOfUses(other.secrets);

/** The difference of two versions: the fields as they are in each. */
function changesOf(before: Version, after: Version): Pick<Update, 'from' | 'to'> {
  const fields = differing(before.spec, after.spec);
  const hasSameCheck = isSameForEngine(before.policy, after.policy);
  const hasSameSecrets = haveSameSecrets(before, after);
  const pick = ({ spec, policy, secrets }: Version): Changed => ({
    ...Object.fromEntries(fields.map((field) => [field, storedValue(spec, field)])),
    ...(hasSameCheck ? {} : { health: policyShown(policy).health }),
    ...(hasSameSecrets ? {} : { secrets }),
  });
  return { from: pick(before), to: pick(after) };
}

/**
 * The update that puts a version in the place of the current one. A container that does not run
 * gets its new version at once; an update in the place of another still falls back on the version
 * that ran before both.
 */
export function updateTo(
  record: ContainerRecord,
  given: Version,
  { nowMs: atMs }: TurnContext,
): { readonly version: Version; readonly update: Update } {
  const version = withoutLook(record, given);
  const runs = record.desired === 'running' && record.placement.phase === 'placed' && isUp(record.observed);
  const fallback = fallbackOf(record) ?? (runs ? versionOf(record) : undefined);
  const before = fallback ?? versionOf(record);
  const isBack = fallback !== undefined && isSameVersion(fallback, version);
  const isUnderWay = fallback !== undefined && !isBack;
  const since = record.generation + 1;
  const update = {
    since,
    phase: isUnderWay ? ('preparing' as const) : ('done' as const),
    ...changesOf(before, version),
    reason: null,
    message: null,
    atMs,
    ...(isUnderWay ? { previous: fallback } : { unproven: record.desired === 'running' ? since : since + 1 }),
  };
  return { version, update };
}

/** `true` if it is up, though it may not be healthy yet. */
const isUp = ({ status, started_at: startedAt }: Observation): boolean =>
  status === 'running' || (status === 'starting' && startedAt !== null);

/**
 * A container that runs once and has been swapped out may not run again: its successor is the one
 * to keep.
 */
const fallbackOf = (record: ContainerRecord): Version | undefined =>
  record.update?.phase === 'verifying' && isUpdating(record) && policyOf(record).restart === 'never'
    ? versionOf(record)
    : previousOf(record);

/** The new version stays; nothing is kept to go back to. */
function ended(update: Update, lastGeneration: number, { nowMs: atMs }: TurnContext): Update {
  const { previous: _, ...rest } = update;
  return { ...rest, phase: 'done', atMs, lastGeneration };
}

/**
 * Ends the update of a container that is not to run: it proves nothing of its new version, which
 * stays.
 */
export function withoutUpdate(record: ContainerRecord, context: TurnContext): ContainerRecord {
  const { update, generation } = record;
  if (update?.previous === undefined) return record;
  const message = 'the container was stopped before the update was verified';
  // A run of what is still being made begins with a start.
  const unproven = update.phase === 'preparing' ? generation + 2 : update.since;
  return { ...record, update: { ...ended(update, generation, context), message, unproven } };
}

export type UpdateShown = Pick<UpdateView, 'phase' | 'reason' | 'message'>;

/** The progress of an update. One that is over is done only if its version has been seen to run. */
export function updateShown({ desired, observed, observedOrder }: ContainerRecord, update: Update): UpdateShown {
  const { phase, reason, message, unproven } = update;
  if (unproven === undefined) return { phase, reason, message };
  const nothing = { reason: null, message: null };
  if (observedOrder.generation >= unproven) {
    if (observed.reason === 'completed') return { phase: 'done', ...nothing };
    if (observed.status === 'failed' || isLooping(observed))
      return { phase: 'failed', reason: observed.reason, message: observed.message };
  }
  return desired === 'running' ? { phase: 'verifying', ...nothing } : { phase: 'stopped', reason: null, message };
}

/** `true` if its version runs well: the update is done once it has done so for long enough. */
export const isBeingProved = ({ update, desired, observed, observedOrder }: ContainerRecord): boolean =>
  update?.unproven !== undefined &&
  observedOrder.generation >= update.unproven &&
  desired === 'running' &&
  observed.status === 'running' &&
  observed.reason === null;

/**
 * Once its version has run, the update is done and stays so. It is stored, because the next owner
 * begins to measure again.
 */
export function withProof(record: ContainerRecord, upSinceMs: number, context: TurnContext): ContainerRecord {
  const { update } = record;
  if (update?.unproven === undefined) return record;
  const isProved = isBeingProved(record) && (upMs(record, upSinceMs, context) ?? 0) >= limits.waitStableSeconds * 1000;
  if (!isProved && updateShown(record, update).phase !== 'done') return record;
  const { unproven: _, ...rest } = update;
  return { ...record, update: { ...rest, reason: null, message: null } };
}

/** An operator's pull policy applies to every version. */
export const withPullPolicy = (
  { update }: ContainerRecord,
  pull_policy: PullPolicy,
): Pick<ContainerRecord, 'update'> =>
  update?.previous === undefined
    ? {}
    : { update: { ...update, previous: { ...update.previous, spec: { ...update.previous.spec, pull_policy } } } };

interface Back {
  readonly reason: Reason | null;
  readonly message: string | null;
  /** The tag that it looked at names the image that runs: nothing has failed. */
  readonly unmoved?: true;
}

/** The declaration as it was before the update, under a new generation. */
export function rolledBack(
  record: ContainerRecord,
  { reason, message, unmoved }: Back,
  { nowMs }: TurnContext,
): ContainerRecord {
  const { update } = record;
  if (update?.previous === undefined) return record;
  const { previous, ...rest } = update;
  const end = unmoved === true ? ({ phase: 'done', unmoved } as const) : ({ phase: 'rolled_back' } as const);
  return {
    ...record,
    ...previous,
    update: { ...rest, ...end, reason, message, atMs: nowMs, lastGeneration: record.generation },
    generation: record.generation + 1,
    updatedAtMs: nowMs,
  };
}

/**
 * The record after its host's report about the update. A host that reports nothing has nothing left
 * to do for it.
 */
export function handleUpdate(
  record: ContainerRecord,
  { update: told, observation: { status, reason } }: Pick<ReportItem, 'update' | 'observation'>,
  context: TurnContext,
): ContainerRecord {
  const { update } = record;
  if (update?.previous === undefined) return record;
  const isProof = status === 'running' || reason === 'completed';
  const over = { ...ended(update, record.generation, context), ...(isProof ? {} : { unproven: update.since }) };
  if (told === undefined) return { ...record, update: over };
  if (told.since !== update.since) return record;
  switch (told.phase) {
    case 'preparing':
    case 'verifying':
      return told.phase === update.phase
        ? record
        : { ...record, update: { ...update, phase: told.phase, atMs: context.nowMs } };
    case 'done':
      return { ...record, update: over };
    case 'rolled_back':
      return rolledBack(record, { ...told, message: told.message && withoutControls(told.message) }, context);
  }
}
