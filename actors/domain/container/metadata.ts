/**
 * What a container has beside what runs, such as its labels. A change makes no generation, and no
 * host hears of it. Pure.
 */
import { fill, line } from '../../../lib/fill.ts';
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import {
  canonicalSpec,
  metadataOf,
  withMetadata,
  type ContainerSpec,
  type Metadata,
} from '../../../schemas/api/fields/container.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { page } from '../page.ts';
import type { PartitionView } from '../state.ts';
import { answer, data, noChanges, refuse, repeatable, type Turn, type TurnContext } from '../turn.ts';
import { find } from './decide.ts';
import { containerJson } from './view.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

export function get(state: PartitionView, ask: Of<'metadata.get'>): Turn {
  const found = find(state, ask);
  return 'refusal' in found ? found.refusal : answer(data('ok', metadataOf(found.record.spec)));
}

/** Idempotent. */
export function put(state: PartitionView, { fields, ...ask }: Of<'metadata.put'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  if (record.desired === 'removed') return refuse('conflict', 'the container is being removed');
  const spec = withMetadata(record.spec, fields);
  const reply = repeatable('ok', metadataOf(spec));
  if (canonicalSpec(spec) === canonicalSpec(record.spec)) return answer(reply, noChanges);
  const next = { ...record, spec, ...updateWith(record, fields), updatedAtMs: context.nowMs };
  return answer(reply, {
    ...noChanges,
    records: [next],
    effects: [{ kind: 'changed', tenant: record.tenant, id: record.id }],
  });
}

/** The version that an update would bring back has it, too. */
function updateWith({ update }: ContainerRecord, fields: Partial<Metadata>): Pick<ContainerRecord, 'update'> {
  if (update?.previous === undefined) return {};
  const { previous } = update;
  return { update: { ...update, previous: { ...previous, spec: withMetadata(previous.spec, fields) } } };
}

/** Of containers that are there, or were within seven days; as many as a message holds. */
export function list(state: PartitionView, ask: Of<'metadata.list'>): Turn {
  const { containers, tombstones } = state.tenant(ask.tenant);
  const found = ask.ids.flatMap((id) => {
    const stored: Partial<ContainerSpec> | undefined =
      containers.get(id)?.spec ?? (tombstones.has(id) ? (tombstones.get(id)?.metadata ?? {}) : undefined);
    return stored === undefined ? [] : [{ id, ...metadataOf(stored) }];
  });
  const { values, next } = fill(found, { bytes: limits.answerPartBytes }, (one) => line(JSON.stringify(one)));
  return answer({ code: 'ok', body: `{"data":[${values.join(',')}],"more":${next !== undefined}}` });
}

/** The tenant's containers, each with its metadata. */
export const overview = (state: PartitionView, ask: Of<'container.overview'>, context: TurnContext): Turn =>
  page(state.tenant(ask.tenant).containers, {
    ...ask,
    maxBytes: limits.answerPartBytes,
    render: (record) => {
      const beside = JSON.stringify(metadataOf(record.spec)).slice(1);
      return `{"container":${containerJson(record, context.fleet)},${beside}`;
    },
  });
