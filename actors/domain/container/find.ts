/**
 * Containers of all tenants of a partition, for an operator. In the order of `Place`: it does not
 * change, so a page goes on where another ended, whatever was created or deleted meanwhile. Pure.
 */
import { fill, line } from '../../../lib/fill.ts';
import type { ContainerRecord, OperatorContainer } from '../../../schemas/api/container.ts';
import type { Place } from '../../../schemas/api/cursor.ts';
import { limits } from '../../../schemas/limits.ts';
import type { FindFilter } from '../../../schemas/wire/answers.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import type { PartitionView } from '../state.ts';
import type { TenantView } from '../tenant/state.ts';
import { answer, type FleetView, type Turn, type TurnContext } from '../turn.ts';
import { containerStatusView, containerView, shownStatus } from './view.ts';

type FindAsk = Extract<Ask, { type: 'container.find' }>;

/** A container to look at, or the place where a tenant begins. */
interface Step {
  readonly place: Place;
  readonly record?: ContainerRecord;
}

const placeOf = ({ tenant, insertedAtMs, id }: ContainerRecord): Place => ({ tenant, insertedAtMs, id });

const isBelow = (one: Place, other: Place): boolean =>
  one.tenant !== other.tenant
    ? one.tenant < other.tenant
    : one.insertedAtMs !== other.insertedAtMs
      ? one.insertedAtMs < other.insertedAtMs
      : one.id < other.id;

/** A tenant counts as a step, so that many tenants without containers have their bound too. */
function* stepsOf({ tenant, containers }: TenantView, from: Place | null): Generator<Step, void, void> {
  yield { place: { tenant, insertedAtMs: 0, id: '' } };
  const records = containers.oldestFirst(from?.tenant === tenant ? from : null);
  for (const record of records) yield { place: placeOf(record), record };
}

/** Only the containers of the host, or of the tenant, if the ask names one. */
function* stepsFrom(state: PartitionView, { from, only }: FindAsk): Generator<Step, void, void> {
  if (only.host !== undefined) {
    const placed = [...state.placedOn(only.host).values()].map((record) => ({ place: placeOf(record), record }));
    yield* placed.sort((one, other) => (isBelow(one.place, other.place) ? -1 : 1));
    return;
  }
  const tenants = only.tenant === undefined ? state.tenantsFrom(from?.tenant ?? '') : [state.tenant(only.tenant)];
  for (const tenant of tenants) yield* stepsOf(tenant, from);
}

function matches(record: ContainerRecord, { tenant, status }: FindFilter, fleet: FleetView): boolean {
  if (tenant !== undefined && record.tenant !== tenant) return false;
  return status === undefined || shownStatus(record, fleet).status === status;
}

/**
 * Looks at `operatorScan` containers at most, however few of them match, and at none before `from`;
 * the containers of a host are sorted for each page.
 */
export function find(state: PartitionView, ask: FindAsk, context: TurnContext): Turn {
  const { fleet } = context;
  const { limit, from, only } = ask;
  let rest: Step | undefined;
  function* bounded(): Generator<Step, void, void> {
    let seen = 0;
    for (const step of stepsFrom(state, ask)) {
      if (from !== null && isBelow(step.place, from)) continue;
      if (seen++ === limits.operatorScan) {
        rest = step;
        return;
      }
      yield step;
    }
  }
  const view = (record: ContainerRecord): OperatorContainer => ({
    container: containerView(record, shownStatus(record, fleet).status),
    status: containerStatusView(record, context, state.inMemory(record.id)),
  });
  const bounds = { bytes: limits.answerPartBytes, items: limit };
  const { values, next } = fill(bounded(), bounds, ({ record }) =>
    record === undefined || !matches(record, only, fleet) ? undefined : line(JSON.stringify(view(record))),
  );
  const end = next ?? rest;
  return answer({ code: 'ok', body: `{"data":[${values.join(',')}],"next":${JSON.stringify(end?.place ?? null)}}` });
}
