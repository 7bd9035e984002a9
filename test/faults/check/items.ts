/** Turns operations of a history into items that the search puts in order. */
import type { Operation, Seen } from './history.ts';
import type { Item, Look, Sight, Write, WriteAction } from './model.ts';

const nowhere = Infinity;

/** Map.groupBy, which Node 20 lacks. */
export function grouped<K, T>(all: Iterable<T>, keyOf: (one: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const one of all) {
    const key = keyOf(one);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return groups;
}

/** The views that an answer holds. */
export function viewsIn({ result }: Operation): readonly Seen[] {
  if (result.kind !== 'ok') return [];
  switch (result.told.of) {
    case 'container':
      return [result.told.container];
    case 'list':
      return result.told.containers;
    case 'quota':
      return [];
  }
}

/** Ids that a view shows but no answer to a create: unknown creates made them. By name. */
function orphansOf(operations: readonly Operation[]): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string>();
  const made = new Set<string>();
  for (const operation of operations) {
    for (const { id, name } of viewsIn(operation)) {
      if (operation.request.kind === 'create') made.add(id);
      if (name !== null) names.set(id, name);
    }
  }
  const orphans = new Map<string, string[]>();
  for (const [id, name] of names) {
    if (!made.has(id)) orphans.set(name, [...(orphans.get(name) ?? []), id]);
  }
  return orphans;
}

/** @param operations of one tenant */
export function itemsOf(operations: readonly Operation[]): Item[] {
  const orphans = orphansOf(operations);
  const idOfKey = new Map<string, string>();
  for (const { request, result } of operations) {
    if (request.kind === 'create' && request.idempotencyKey !== null && result.kind === 'ok') {
      if (result.told.of === 'container') idOfKey.set(request.idempotencyKey, result.told.container.id);
    }
  }
  const items: Item[] = [];
  const interval = (operation: Operation): Omit<Write, 'is' | 'mustHappen' | 'action'> => ({
    index: items.length,
    operation,
    fromMs: operation.invokedMs,
    untilMs: operation.answeredMs ?? nowhere,
  });
  const look = (operation: Operation, sight: Sight): void => {
    items.push({ ...interval(operation), is: 'look', sight } satisfies Look);
  };
  const mustHappen = (operation: Operation, action: WriteAction): void => {
    items.push({ ...interval(operation), is: 'write', mustHappen: true, action });
  };
  const mayHappen = (operation: Operation, action: WriteAction, untilMs = nowhere): void => {
    items.push({ ...interval(operation), untilMs, is: 'write', mustHappen: false, action });
  };

  for (const operation of operations) {
    const { request, result } = operation;
    const until = operation.answeredMs ?? nowhere;
    switch (request.kind) {
      case 'create': {
        const { name, version, idempotencyKey: key } = request;
        const told = result.kind === 'ok' && result.told.of === 'container' ? result.told.container : undefined;
        const known = key === null ? undefined : idOfKey.get(key);
        const guessed = known === undefined ? (orphans.get(name) ?? []) : [known];
        const ids = told === undefined ? guessed : [told.id];
        const action: WriteAction = {
          kind: 'create',
          name,
          ids,
          unseenId: told === undefined && known === undefined ? `unseen-${items.length}` : null,
          isAnswered: told !== undefined,
          host: told?.host ?? null,
          version,
          key,
        };
        if (result.kind === 'ok') mustHappen(operation, action);
        else if (result.kind === 'unknown') mayHappen(operation, action);
        // Done, then gone, then repeated by the gateway.
        else if (result.code === 'not_found') mayHappen(operation, action, until);
        else if (result.code === 'over_quota') look(operation, { kind: 'over quota', version });
        else if (result.code === 'conflict' && key !== null) look(operation, { kind: 'key spent', key });
        else if (result.nameTaken === true) look(operation, { kind: 'name taken', name });
        break;
      }
      case 'start':
      case 'stop':
      case 'delete': {
        const { kind, id } = request;
        if (result.kind === 'ok') mustHappen(operation, { kind, id });
        else if (result.kind === 'unknown') mayHappen(operation, { kind, id });
        else if (result.code === 'conflict') look(operation, { kind: 'removing', id });
        else if (result.code === 'not_found') {
          mayHappen(operation, { kind, id }, until);
          look(operation, { kind: 'absent', id });
        }
        break;
      }
      case 'patch': {
        const { id, change, read } = request;
        const action: WriteAction = { kind: 'patch', id, change, read };
        if (result.kind === 'ok') mustHappen(operation, action);
        else if (result.kind === 'unknown') mayHappen(operation, action);
        else if (result.code === 'conflict') look(operation, { kind: 'removing', id });
        else if (result.code === 'over_quota') look(operation, { kind: 'over quota by change', id, change });
        else if (result.code === 'precondition_failed' && read !== null)
          look(operation, { kind: 'declared otherwise', id, read });
        else if (result.code === 'not_found') {
          mayHappen(operation, action, until);
          look(operation, { kind: 'absent', id });
        }
        break;
      }
      case 'get':
        if (result.kind === 'ok' && result.told.of === 'container') {
          look(operation, { kind: 'there', container: result.told.container });
        } else if (result.kind === 'refused' && result.code === 'not_found') {
          look(operation, { kind: 'absent', id: request.id });
        }
        break;
      case 'list':
        if (result.kind === 'ok' && result.told.of === 'list') {
          const { containers, isWhole } = result.told;
          look(operation, { kind: 'list', containers: new Map(containers.map((seen) => [seen.id, seen])), isWhole });
        }
        break;
      case 'quota':
        if (result.kind === 'ok' && result.told.of === 'quota') {
          look(operation, { kind: 'quota', quota: result.told.quota });
        }
        break;
    }
  }
  return items;
}
