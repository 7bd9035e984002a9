/**
 * Versions of a container's declaration, for rollbacks. The record keeps the last ones, each as its
 * differences from the one after it; the newest, as its differences from the record, which has some
 * only after a rollback by its host. So a version takes no more space than its changes.
 *
 * A release before 0.2.0 kept the list and did not continue it. `base` identifies the declaration
 * that the list is about: where the record declares something else, the earlier versions are
 * forgotten. Pure.
 */
import { fill } from '../../../lib/fill.ts';
import {
  isLooping,
  type ContainerRecord,
  type PastVersion,
  type PastVersions,
  type VersionContent,
  type VersionOutcome,
} from '../../../schemas/api/container.ts';
import { canonicalText, storedValue, versioned } from '../../../schemas/api/fields/container.ts';
import { policyOf, textOfPolicy } from '../../../schemas/api/policy.ts';
import { noSecrets, usesShown } from '../../../schemas/api/secret.ts';
import { limits } from '../../../schemas/limits.ts';
import { hashesOf, hexWord } from '../../../schemas/text-hash.ts';
import { updateShown } from './updates.ts';

const contentOf = (record: ContainerRecord): VersionContent => ({
  ...(Object.fromEntries(versioned.map((name) => [name, storedValue(record.spec, name)])) as VersionContent),
  policy: policyOf(record),
  secrets: usesShown(record.secrets ?? noSecrets),
  repull: record.spec.repull ?? null,
});

const names = [...versioned, 'policy', 'secrets', 'repull'] as const;

function textOf(content: VersionContent, name: (typeof names)[number]): string {
  switch (name) {
    case 'policy':
      return textOfPolicy(content.policy);
    case 'secrets':
    case 'repull':
      return JSON.stringify(content[name]);
    default:
      return canonicalText(name, content[name]);
  }
}

const baseOf = (content: VersionContent): string =>
  // A look is left out if there is none, as before there were any.
  hashesOf(
    JSON.stringify(
      names.flatMap((name) => (name === 'repull' && content.repull === null ? [] : textOf(content, name))),
    ),
  )
    .map(hexWord)
    .join('');

/** The fields of `content` that differ from `than`. */
const differing = (content: VersionContent, than: VersionContent): Partial<VersionContent> =>
  Object.fromEntries(
    names.filter((name) => textOf(content, name) !== textOf(than, name)).map((name) => [name, content[name]]),
  );

/** The first version of a container that was not changed since versions are kept. */
const first = ({ insertedAtMs, cause, update }: ContainerRecord): PastVersion => ({
  version: 1,
  generation: update?.since ?? 1,
  atMs: update?.atMs ?? insertedAtMs,
  by: null,
  requestId: cause?.generation === 1 ? cause.requestId : null,
  differs: {},
});

/** Newest first. */
function listOf(record: ContainerRecord): readonly [PastVersion, ...PastVersion[]] {
  const { versions } = record;
  const [newest, ...older] = versions?.list ?? [first(record)];
  if (newest === undefined) return [first(record)];
  if (versions === undefined || versions.base === baseOf(contentOf(record))) return [newest, ...older];
  const { generation, updatedAtMs: atMs } = record;
  return [{ version: newest.version + 1, generation, atMs, by: null, requestId: null, differs: {} }];
}

/** The outcome of the newest version so far; `null` if it is not known yet. */
function soFar(record: ContainerRecord, { generation }: PastVersion): VersionOutcome {
  const { update, observed } = record;
  if (update?.since === generation) {
    const { phase, reason } = updateShown(record, update);
    return { outcome: phase === 'preparing' || phase === 'verifying' ? null : phase, reason };
  }
  if (observed.reason === 'completed') return { outcome: 'done', reason: null };
  if (observed.status === 'failed' || isLooping(observed)) return { outcome: 'failed', reason: observed.reason };
  return { outcome: observed.status === 'running' && observed.reason === null ? 'done' : null, reason: null };
}

export const outcomeOf = (record: ContainerRecord, { outcome, reason, ...newest }: PastVersion): VersionOutcome =>
  outcome === undefined ? soFar(record, newest) : { outcome, reason: reason ?? null };

/** The versions that are kept. */
const bounded = (list: readonly PastVersion[]): readonly PastVersion[] =>
  fill(list, { bytes: limits.versionsBytes, items: limits.containerVersions }, (one) => ({
    value: one,
    bytes: Buffer.byteLength(JSON.stringify(one)),
  })).values;

const stored = (record: ContainerRecord, list: readonly PastVersion[]): ContainerRecord => ({
  ...record,
  versions: { base: baseOf(contentOf(record)), list: bounded(list) } satisfies PastVersions,
});

/** The newest version with its full content, as its differences from another record. */
const rebased = (before: ContainerRecord, newest: PastVersion, after: ContainerRecord): PastVersion => ({
  ...newest,
  differs: differing({ ...contentOf(before), ...newest.differs }, contentOf(after)),
});

/** The record after its host has brought back what ran before: that is no version of its own. */
export function backFrom(before: ContainerRecord, after: ContainerRecord): ContainerRecord {
  const [newest, ...older] = listOf(before);
  const { reason = null, unmoved } = after.update ?? {};
  const outcome = unmoved === true ? ('done' as const) : ('rolled_back' as const);
  const settled = { ...rebased(before, newest, after), outcome, reason };
  return stored(after, [settled, ...older]);
}

/** The digest of the newest version. During an update, its host may still report the one before. */
export const digestIn = (
  { observed, observedOrder, update }: ContainerRecord,
  { generation, digest, outcome }: PastVersion,
): Pick<PastVersion, 'digest'> => {
  if (digest !== undefined) return { digest };
  const isOfVersion =
    outcome !== 'rolled_back' && update?.previous === undefined && observedOrder.generation >= generation;
  return isOfVersion && observed.image !== undefined ? { digest: observed.image.digest } : {};
};

/** `undefined` if the declaration is unchanged. */
export function withVersion(
  before: ContainerRecord,
  after: ContainerRecord,
  head: Pick<PastVersion, 'by' | 'requestId' | 'atMs'>,
): ContainerRecord | undefined {
  if (Object.keys(differing(contentOf(before), contentOf(after))).length === 0) return undefined;
  const [newest, ...older] = listOf(before);
  const { outcome, reason } = outcomeOf(before, newest);
  const past = {
    ...rebased(before, newest, after),
    outcome: outcome ?? ('superseded' as const),
    reason,
    ...digestIn(before, newest),
  };
  const next = { version: newest.version + 1, generation: after.generation, ...head, differs: {} };
  return stored(after, [next, past, ...older]);
}

/** All versions with their full content, newest first. */
export function* versionsOf(record: ContainerRecord): Generator<readonly [PastVersion, VersionContent], void, void> {
  let content = contentOf(record);
  for (const version of listOf(record)) {
    content = { ...content, ...version.differs };
    yield [version, content];
  }
}
