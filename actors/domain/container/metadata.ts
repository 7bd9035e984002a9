/**
 * The metadata of a container, such as its labels. A change makes an event and no generation, and
 * no host is notified. Pure.
 */
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import { metadataEvent } from '../../../schemas/api/event.ts';
import {
  canonicalText,
  containerFields,
  metadataNames,
  metadataOf,
  notedNames,
  storedValue,
  withKept,
  type ContainerSpec,
  type Metadata,
  type Noted,
} from '../../../schemas/api/fields/container.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { pageOf } from '../page.ts';
import type { PartitionView } from '../state.ts';
import {
  answer,
  conflict,
  data,
  invalid,
  noChanges,
  repeatable,
  type Changes,
  type EventDraft,
  type Turn,
  type TurnContext,
} from '../turn.ts';
import { find } from './decide.ts';
import { eventOf } from './transitions.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

export function get(state: PartitionView, ask: Of<'metadata.get'>): Turn {
  const found = find(state, ask);
  return 'refusal' in found ? found.refusal : answer(data('ok', metadataOf(found.record.spec)));
}

/** Idempotent: a write that changes nothing makes no event. */
export function put(state: PartitionView, ask: Of<'metadata.put'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  if (record.desired === 'removed') return conflict('removing', 'the container is being removed');
  const fields = fieldsOf(ask, metadataOf(record.spec));
  const faults = fields.labels === undefined ? [] : containerFields.labels.faultsOf(fields.labels);
  if (faults.length > 0) return invalid({ _: [...faults] });
  const next = withMetadata(record, fields, context);
  const reply = repeatable('ok', metadataOf(next.record.spec));
  return answer(reply, next.events.length === 0 ? noChanges : changesOf(next));
}

interface WithMetadata {
  readonly record: ContainerRecord;
  /** One event for each field with another value; empty if the record is unchanged. */
  readonly events: readonly EventDraft[];
}

/** The changes of a turn that changes metadata only: no host is notified. */
export const changesOf = ({ record, events }: WithMetadata): Changes => ({
  ...noChanges,
  records: [record],
  events,
  effects: [{ kind: 'changed', tenant: record.tenant, id: record.id }],
});

/** @param fields new values; the other fields stay */
export function withMetadata(
  record: ContainerRecord,
  fields: Partial<Metadata & Noted>,
  context: TurnContext,
): WithMetadata {
  const spec = withKept(record.spec, fields);
  const changed = [...metadataNames, ...notedNames].filter(
    (name) => canonicalText(name, storedValue(record.spec, name)) !== canonicalText(name, storedValue(spec, name)),
  );
  if (changed.length === 0) return { record, events: [] };
  const next = { ...record, spec, ...updateWith(record, fields), updatedAtMs: context.nowMs };
  return { record: next, events: changed.map((name) => eventOf(metadataEvent(name), next, context)) };
}

const fieldsOf = ({ fields, labels }: Of<'metadata.put'>, before: Metadata): Partial<Metadata> =>
  labels === undefined ? fields : { ...fields, labels: containerFields.labels.merged(before.labels, labels) };

/** Changes the version that an update would bring back, too. */
function updateWith({ update }: ContainerRecord, fields: Partial<Metadata>): Pick<ContainerRecord, 'update'> {
  if (update?.previous === undefined) return {};
  const { previous } = update;
  return { update: { ...update, previous: { ...previous, spec: withKept(previous.spec, fields) } } };
}

/** Metadata of containers that are there, or were within seven days; as many as a message holds. */
export function list(state: PartitionView, ask: Of<'metadata.list'>): Turn {
  const { containers, tombstones } = state.tenant(ask.tenant);
  const found = ask.ids.flatMap((id) => {
    const stored: Partial<ContainerSpec> | undefined =
      containers.get(id)?.spec ?? (tombstones.has(id) ? (tombstones.get(id)?.metadata ?? {}) : undefined);
    return stored === undefined ? [] : [{ id, ...metadataOf(stored) }];
  });
  return pageOf(found, { bytes: limits.answerPartBytes }, (one) => JSON.stringify(one));
}
