/** The versions of a container as its tenant sees them, and the way back to one of them. Pure. */
import { fill, line } from '../../../lib/fill.ts';
import { timestamp } from '../../../lib/time/timestamp.ts';
import { authorSeenBy } from '../../../schemas/api/audit/line.ts';
import type { ContainerRecord, ContainerVersion, PastVersion, VersionContent } from '../../../schemas/api/container.ts';
import { usualPullPolicy, withKept, type ContainerSpec } from '../../../schemas/api/fields/container.ts';
import type { SecretUses } from '../../../schemas/api/secret.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import type { PartitionView } from '../state.ts';
import { answer, invalid, isSuccess, type Turn, type TurnContext } from '../turn.ts';
import { find } from './decide.ts';
import { put, specOf } from './spec.ts';
import { digestIn, outcomeOf, versionsOf, withVersion } from './versions.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

type Kept = readonly [PastVersion, VersionContent];

/** The kept versions, newest first, each with its digest if that is known. */
const keptOf = (record: ContainerRecord): Kept[] =>
  [...versionsOf(record)].map(([version, content], at) => [
    at === 0 ? { ...version, ...digestIn(record, version) } : version,
    content,
  ]);

const imageOf = ({ registry, repository, tag }: VersionContent): string => JSON.stringify([registry, repository, tag]);

/**
 * The digest that brings a version's image back; `null` if its tag does. A tag that has moved since
 * names another image now, also on the host.
 */
function pinned([{ digest }, content]: Kept, later: readonly Kept[]): string | null {
  if (content.digest !== null || digest === undefined) return content.digest;
  const hasMoved = later.some(
    ([version, other]) =>
      imageOf(other) === imageOf(content) && version.digest !== undefined && version.digest !== digest,
  );
  return hasMoved ? digest : null;
}

function specWith(
  { spec }: ContainerRecord,
  { policy: _, secrets: __, repull: ___, ...fields }: VersionContent,
): ContainerSpec {
  const next = { ...spec, ...fields };
  return withKept({ ...next, pull_policy: usualPullPolicy(next) }, next);
}

/** A version of the document names secrets, not their versions. */
const usesOf = ({ secrets: { env, files } }: VersionContent): SecretUses => ({
  env: Object.fromEntries(Object.entries(env).map(([key, name]) => [key, { name, version: 0 }])),
  files: Object.fromEntries(
    Object.entries(files).map(([path, { secret: name, ...file }]) => [path, { name, version: 0, ...file }]),
  ),
});

/** The versions as they are shown; host, desired state, labels and project are the current ones. */
function* shown(record: ContainerRecord): Generator<ContainerVersion, void, void> {
  for (const [version, content] of keptOf(record)) {
    const { policy } = content;
    const { digest } = version;
    yield {
      version: version.version,
      generation: version.generation,
      at: timestamp(version.atMs),
      by: version.by === null ? null : authorSeenBy(record.tenant, version.by),
      request_id: version.requestId,
      ...outcomeOf(record, version),
      ...(digest === undefined ? {} : { digest }),
      spec: specOf({ ...record, spec: specWith(record, content), policy, secrets: usesOf(content) }),
    };
  }
}

/** Newest first; as many as a message holds. */
export function list(state: PartitionView, ask: Of<'container.versions'>): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { values } = fill(shown(found.record), { bytes: limits.answerPartBytes }, (one) => line(JSON.stringify(one)));
  return answer({ code: 'ok', body: `{"data":[${values.join(',')}]}` });
}

/** Writes the document as it was: this makes a version, and is refused where a `PUT` would be. */
export function rollback(state: PartitionView, ask: Of<'container.rollback'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  const kept = keptOf(record);
  const wanted = kept.find(([{ version }]) => version === ask.version);
  if (wanted === undefined)
    return invalid({ version: [`is not kept: give one of ${kept.map(([{ version }]) => version).join(', ')}`] });
  const [, content] = wanted;
  const { policy, secrets } = content;
  const digest = pinned(wanted, kept.slice(0, kept.indexOf(wanted)));
  const declaration = { spec: specWith(record, { ...content, digest }), policy, secrets };
  return put(state, { ...ask, type: 'spec.put', declaration }, context);
}

/** A write that declares something else makes a version. */
export function withVersions(state: PartitionView, ask: Ask, turn: Turn, context: TurnContext): Turn {
  const { reply, changes } = turn;
  if (!isSuccess(reply) || !('id' in ask) || !('op' in ask)) return turn;
  const before = state.tenant(ask.tenant).containers.get(ask.id);
  if (before === undefined) return turn;
  const records = changes.records.map((after) => {
    if (after.kind !== 'container' || after.id !== before.id) return after;
    const head = { by: ask.cause?.by ?? null, requestId: ask.rid, atMs: context.nowMs };
    return withVersion(before, after, head) ?? after;
  });
  return { reply, changes: { ...changes, records } };
}
