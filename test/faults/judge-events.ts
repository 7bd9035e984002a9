/**
 * Judges the events of a run: whatever was killed, cut off or away, each generation of a container
 * has its event, in order, and no event comes twice.
 */
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { Container, ContainerStatusView } from '../../schemas/api/container.ts';
import { Event, type EventType } from '../../schemas/api/event.ts';
import { settledFaults, type Ask } from './asking.ts';
import type { Operation, RequestKind } from './check/history.ts';
import { grouped } from './check/items.ts';
import { overlaps, type Span } from './load/silence.ts';
import { compute } from './load/requests.ts';
import { tenants } from './load/tenants.ts';
import { spanOf } from './judge-audit.ts';
import type { Judgement } from './judge.ts';
import type { World } from './world/world.ts';

const pageSize = 500;
/** Far more than a run writes; a cursor that turns in a circle ends here. */
const pagesMax = 1_000;

/** A write as an event. */
const types: Readonly<Partial<Record<RequestKind, EventType>>> = {
  create: 'created',
  start: 'start_requested',
  stop: 'stop_requested',
  patch: 'update_requested',
  delete: 'delete_requested',
};
/** They happen once in the life of a container. */
const once: readonly EventType[] = ['created', 'delete_requested', 'removed'];

export type Told = Pick<Event, 'id' | 'type' | 'generation' | 'request_id'> & { readonly container_id: string };

const decodePage = decoder(
  Type.Object({
    data: Type.Array(Event),
    next_cursor: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  }),
);
const decodeList = decoder(Type.Object({ data: Type.Array(Type.Object({ id: Container.properties.id })) }));
const decodeStatus = decoder(Type.Object({ data: ContainerStatusView }));

async function eventsOf(tenant: string, ask: Ask): Promise<Event[]> {
  const events: Event[] = [];
  let cursor = '';
  for (let page = 0; page < pagesMax; page++) {
    const path = `${compute}/events?since=1970-01-01T00:00:00Z&order=asc&limit=${pageSize}${cursor}`;
    const { data, next_cursor: next } = await ask(path, decodePage);
    events.push(...data);
    if (next == null) return events;
    cursor = `&cursor=${encodeURIComponent(next)}`;
  }
  throw new Error(`${tenant}: its events have more than ${pagesMax} pages`);
}

/** The container that an answered write was about. */
function containerOf({ request, result }: Operation): string | undefined {
  if (result.kind !== 'ok') return undefined;
  if (request.kind === 'create') return result.told.of === 'container' ? result.told.container.id : undefined;
  return 'id' in request ? request.id : undefined;
}

/** Faults in the events of one container, oldest first. */
function faultsOfOne(id: string, events: readonly Told[], wanted: number | undefined): string[] {
  const faults: string[] = [];
  let last = 0;
  for (const { id: event, type, generation } of events) {
    if (generation < last)
      faults.push(`${id}: ${type} ${event} of generation ${generation} comes after one of ${last}`);
    if (generation > last + 1) faults.push(`${id} has no event of the generations ${last + 1} to ${generation - 1}`);
    last = Math.max(last, generation);
  }
  if (wanted !== undefined && wanted !== last)
    faults.push(`${id} is at generation ${wanted}, and its events at ${last}`);
  return faults;
}

/**
 * Faults in the events of one tenant.
 * @param events oldest first
 * @param generations of the containers that exist
 * @param forgotten events of then may be missing
 */
export function eventFaults(
  operations: readonly Operation[],
  events: readonly Told[],
  generations: ReadonlyMap<string, number>,
  forgotten: readonly Span[] = [],
): string[] {
  const faults: string[] = [];
  const byContainer = grouped(events, ({ container_id }) => container_id);
  const byRequest = grouped(events, ({ request_id }) => request_id ?? '');
  for (const [id, same] of grouped(events, (event) => event.id)) {
    if (same.length > 1) faults.push(`event ${id} comes ${same.length} times`);
  }
  /** Containers that were made when nothing was forgotten any more. */
  const whole = new Set(
    operations
      .filter(({ request }) => request.kind === 'create')
      .filter(({ invokedMs }) => forgotten.every(({ toMs }) => invokedMs > toMs))
      .map(containerOf),
  );
  for (const [id, its] of byContainer) {
    for (const type of once) {
      const count = its.filter((event) => event.type === type).length;
      if (count > 1) faults.push(`${id} was ${type} ${count} times`);
    }
    if (forgotten.length === 0 || whole.has(id)) faults.push(...faultsOfOne(id, its, generations.get(id)));
  }
  for (const operation of operations) {
    const { request, requestId = '', result } = operation;
    const type = types[request.kind];
    if (type === undefined) continue;
    const what = `${request.kind} ${requestId}`;
    const found = (byRequest.get(requestId) ?? []).filter((event) => event.type === type);
    if (found.length > 1) faults.push(`${what} has ${found.length} events: ${found.map(({ id }) => id).join(', ')}`);
    // Done, then gone, then repeated by the gateway: see `Result`.
    if (found.length > 0 && result.kind === 'refused' && result.code !== 'not_found')
      faults.push(`${what} was refused as ${result.code}, and has the event ${found[0]?.id}`);
    const id = containerOf(operation);
    const isOnce = id !== undefined && once.includes(type) && !overlaps(spanOf(operation), forgotten);
    if (isOnce && byContainer.get(id)?.some((event) => event.type === type) !== true)
      faults.push(`${what} was answered for ${id}, which has no event ${type}`);
  }
  return faults;
}

/** Once all faults are healed. */
export async function judgeEvents(
  world: World,
  operations: readonly Operation[],
  forgotten: readonly Span[],
): Promise<Judgement> {
  const faults = await settledFaults(world, async (askerOf) => {
    const found: string[] = [];
    for (const tenant of tenants) {
      const ask = await askerOf(tenant);
      const generations = new Map<string, number>();
      for (const { id } of (await ask(compute, decodeList)).data)
        generations.set(id, (await ask(`${compute}/${id}/status`, decodeStatus)).data.generation);
      const its = operations.filter((operation) => operation.tenant === tenant);
      found.push(...eventFaults(its, await eventsOf(tenant, ask), generations, forgotten));
    }
    return found;
  });
  return { what: 'each generation of a container has its event, once and in order', faults };
}
