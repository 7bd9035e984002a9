/**
 * The tenant's containers as `GET /api/v2/containers` shows them: as a list, and as a list that is
 * followed by its changes. Pure.
 */
import { fill, line } from '../../../lib/fill.ts';
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import { hasLabel, metadataOf } from '../../../schemas/api/fields/container.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { OverviewFilter, WatchPosition } from '../../../schemas/wire/answers.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { List, type ListView } from '../order.ts';
import { page } from '../page.ts';
import type { PartitionView } from '../state.ts';
import type { TenantView } from '../tenant/state.ts';
import { answer, type FleetView, type Turn, type TurnContext } from '../turn.ts';
import { etagOfRecord } from '../preconditions/resources.ts';
import { specOf } from './spec.ts';
import { containerJson, containerStatusView, shownStatus } from './view.ts';
import { KiB } from '../../../schemas/limits/units.ts';

/** A page of changes that is sent at once to a client that watches the overview. */
export const watchPageBytes = 128 * KiB;

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

/** @param include parts of an item besides the container and its metadata */
const itemOf =
  (state: PartitionView, include: readonly string[], context: TurnContext) =>
  (record: ContainerRecord): string => {
    const beside = {
      ...(include.includes('status')
        ? { status: containerStatusView(record, context, state.inMemory(record.id)) }
        : {}),
      ...(include.includes('spec') ? { spec: specOf(record), etag: etagOfRecord(record) } : {}),
      ...metadataOf(record.spec),
    };
    return `{"container":${containerJson(record, context.fleet)},${JSON.stringify(beside).slice(1)}`;
  };

type Wanted = Pick<Of<'container.overview'>, 'only' | 'labels'>;

/** Several values of one filter are alternatives, and different filters must all hold. */
function isWanted(
  record: ContainerRecord,
  { only: { status, name, project, host } = {}, labels }: Wanted,
  fleet: FleetView,
): boolean {
  const { placement, spec } = record;
  if (!hasLabel(spec, labels) || (name !== undefined && !name.includes(spec.name))) return false;
  if (project !== undefined && !project.includes(spec.project ?? '')) return false;
  if (host !== undefined && (placement.phase === 'unplaced' || !host.includes(placement.host))) return false;
  return status === undefined || status.includes(shownStatus(record, fleet).status);
}

/** Containers with one of the names; all if it is absent. */
function named({ containers, names }: TenantView, wanted: OverviewFilter['name']): ListView<ContainerRecord> {
  if (wanted === undefined) return containers;
  const found = new List<ContainerRecord>();
  for (const name of wanted) {
    const id = names.get(name);
    const record = id === undefined ? undefined : containers.get(id);
    if (record !== undefined) found.set(record.id, record);
  }
  return found;
}

export function overview(state: PartitionView, ask: Of<'container.overview'>, context: TurnContext): Turn {
  const { only = {}, include = [] } = ask;
  return page(named(state.tenant(ask.tenant), only.name), {
    ...ask,
    maxBytes: limits.answerPartBytes,
    matches: (record) => isWanted(record, ask, context.fleet),
    render: itemOf(state, include, context),
  });
}

const positionIn = (state: PartitionView): WatchPosition => ({ epoch: state.epoch, revision: state.itemRevision });

const withFields = (body: string, fields: object): Turn =>
  answer({ code: 'ok', body: `${body.slice(0, -1)},${JSON.stringify(fields).slice(1)}` });

/** A page of all containers, or the changes since a position. */
export function watch(state: PartitionView, ask: Of<'container.watch'>, context: TurnContext): Turn {
  const { tenant, from } = ask;
  if ('after' in from) return changes(state, ask, from.after, context);
  const { reply } = page(named(state.tenant(tenant), ask.only?.name), {
    limit: limits.overviewMax,
    before: from.before,
    maxBytes: watchPageBytes,
    matches: (record) => isWanted(record, ask, context.fleet),
    render: itemOf(state, ['status'], context),
  });
  return withFields(reply.body, { position: positionIn(state), more: false });
}

/**
 * The changes since a position. A container that does not match is shown as removed, also if it
 * never matched.
 */
function changes(state: PartitionView, ask: Of<'container.watch'>, after: WatchPosition, context: TurnContext) {
  const { tenant, containers } = state.tenant(ask.tenant);
  const isOurs = after.epoch === state.epoch;
  const changed = isOurs ? state.itemsSince(tenant, after.revision) : undefined;
  const now = positionIn(state);
  if (changed === undefined)
    return withFields('{"data":[]}', { position: now, more: false, reset: isOurs ? 'expired' : 'unknown' });
  const render = itemOf(state, ['status'], context);
  const itemOrRemoved = ([id]: readonly [ContainerId, number]) => {
    const record = containers.get(id);
    const isThere = record !== undefined && isWanted(record, ask, context.fleet);
    return line(isThere ? render(record) : JSON.stringify({ removed: id }));
  };
  const { values, next } = fill(changed, { bytes: watchPageBytes, items: limits.overviewMax }, itemOrRemoved);
  const position = next === undefined ? now : { ...now, revision: next[1] - 1 };
  return withFields(`{"data":[${values.join(',')}]}`, { position, more: next !== undefined });
}
