/**
 * Judgements that say more than "no order exists": each looks for one kind of harm and names the
 * operations that show it. Every linearizable history passes all of them; a history that passes all
 * of them may still not be linearizable.
 */
import { grouped, viewsIn } from './items.ts';
import type { History, Operation, Seen } from './history.ts';
import { dimensions } from './model.ts';

export type Rule =
  'lost write' | 'stale read' | 'done twice' | 'cap exceeded' | 'resurrected' | 'not linearizable' | 'undecided';

export interface Finding {
  readonly rule: Rule;
  readonly tenant: string;
  readonly words: string;
  /** The operations that show it, in the order of their calls. */
  readonly operations: readonly Operation[];
}

const isAnswered = ({ result }: Operation): boolean => result.kind === 'ok';
/** One ended before the other was sent; an operation without an answer never ends. */
const isBefore = (one: Operation, other: Operation): boolean =>
  one.result.kind !== 'unknown' && one.answeredMs !== null && one.answeredMs < other.invokedMs;
/** One was sent after the other had ended. */
const isAfter = (one: Operation, other: Operation): boolean =>
  other.answeredMs !== null && one.invokedMs > other.answeredMs;

const describeRequest = ({ request }: Operation): string => {
  switch (request.kind) {
    case 'create':
      return `create ${request.name}`;
    case 'list':
    case 'quota':
      return request.kind;
    case 'patch':
      return `patch ${request.id} to ${JSON.stringify(request.change)}`;
    default:
      return `${request.kind} ${request.id}`;
  }
};

const seenText = ({ id, name, isRemoving, desired, generation, host, version, update }: Seen): string =>
  [
    version === null ? (name ?? id) : `${name ?? id}:${version.tag}`,
    desired ?? (isRemoving ? 'removing' : 'there'),
    ...(generation === null ? [] : [`generation ${generation}`]),
    host === null ? 'no host' : `on ${host}`,
    ...(update === null || update === 'none' ? [] : [`update ${update}`]),
  ].join(' ');

/** One line: when, who, what, and what came of it. */
export function describe(operation: Operation): string {
  const { invokedMs, answeredMs, process, result } = operation;
  const outcome =
    result.kind === 'refused'
      ? result.code
      : result.kind === 'unknown'
        ? `unknown (${result.why})`
        : result.told.of === 'quota'
          ? `used ${JSON.stringify(result.told.quota.usage)}`
          : result.told.of === 'list'
            ? `[${result.told.containers.map(seenText).join(', ')}]`
            : seenText(result.told.container);
  return `${invokedMs.toFixed(1)}–${answeredMs?.toFixed(1) ?? '…'} ${process}: ${describeRequest(operation)} → ${outcome}`;
}

interface Tenant {
  readonly tenant: string;
  readonly caps: History['caps'];
  readonly goodTags: History['goodTags'];
  readonly operations: readonly Operation[];
  /** By container: creates that it answered, writes and reads that name it, lists that show it. */
  readonly of: ReadonlyMap<string, readonly Operation[]>;
  readonly lists: readonly Operation[];
}

export function judge({ caps, goodTags, operations }: History): Finding[] {
  const tenants = grouped(operations, ({ tenant }) => tenant);
  return [...tenants].flatMap(([tenant, its]) => {
    const of = new Map<string, Operation[]>();
    for (const operation of its) {
      const ids = new Set(viewsIn(operation).map(({ id }) => id));
      if ('id' in operation.request) ids.add(operation.request.id);
      for (const id of ids) {
        const list = of.get(id);
        if (list === undefined) of.set(id, [operation]);
        else list.push(operation);
      }
    }
    const lists = its.filter(({ result }) => result.kind === 'ok' && result.told.of === 'list' && result.told.isWhole);
    const known: Tenant = { tenant, caps, goodTags, operations: its, of, lists };
    return [
      ...capsExceeded(known),
      ...doneTwice(known),
      ...generations(known),
      ...missed(known),
      ...resurrected(known),
    ];
  });
}

function* capsExceeded({ tenant, caps, operations }: Tenant): Generator<Finding> {
  for (const operation of operations) {
    if (operation.result.kind !== 'ok') continue;
    const { told } = operation.result;
    if (told.of === 'list' && told.containers.length > (caps.containers ?? Infinity)) {
      const words = `a list shows ${told.containers.length} containers, the cap is ${caps.containers}`;
      yield { rule: 'cap exceeded', tenant, words, operations: [operation] };
    }
    if (told.of !== 'quota') continue;
    for (const dimension of dimensions) {
      const used = told.quota.usage[dimension];
      if (used <= (caps[dimension] ?? Infinity)) continue;
      const words = `${used} of ${dimension} are in use, the cap is ${caps[dimension]}`;
      yield { rule: 'cap exceeded', tenant, words, operations: [operation] };
    }
  }
}

/** Two containers for one key, for one name, or for one create. */
function* doneTwice({ tenant, operations, of }: Tenant): Generator<Finding> {
  const byKey = new Map<string, { readonly id: string; readonly create: Operation }>();
  const created = new Set<string>();
  const unknown = new Map<string, number>();
  const names = new Map<string, string>();
  for (const operation of operations) {
    const { request, result } = operation;
    for (const { id, name } of viewsIn(operation)) if (name !== null) names.set(id, name);
    if (request.kind !== 'create') continue;
    if (result.kind === 'unknown' || (result.kind === 'refused' && result.code === 'not_found')) {
      unknown.set(request.name, (unknown.get(request.name) ?? 0) + 1);
    }
    if (result.kind !== 'ok' || result.told.of !== 'container') continue;
    const { id } = result.told.container;
    created.add(id);
    if (request.idempotencyKey === null) continue;
    const earlier = byKey.get(request.idempotencyKey);
    if (earlier === undefined) byKey.set(request.idempotencyKey, { id, create: operation });
    else if (earlier.id !== id) {
      const words = `two containers, ${earlier.id} and ${id}, for the Idempotency-Key ${request.idempotencyKey}`;
      yield { rule: 'done twice', tenant, words, operations: [earlier.create, operation] };
    }
  }
  for (const list of operations) {
    const shown = grouped(viewsIn(list), ({ name }) => name);
    for (const [name, twins] of shown) {
      if (twins.length < 2) continue;
      const words = `a list shows ${twins.length} containers named ${name}`;
      yield { rule: 'done twice', tenant, words, operations: [list] };
    }
  }
  const strangers = grouped(
    [...names].filter(([id]) => !created.has(id)),
    ([, name]) => name,
  );
  for (const [name, ids] of strangers) {
    const attempts = unknown.get(name) ?? 0;
    if (ids.length <= attempts) continue;
    const words = `${ids.map(([id]) => id).join(', ')}: named ${name}, more than the ${attempts} creates without an answer can have made`;
    yield { rule: 'done twice', tenant, words, operations: ids.flatMap(([id]) => of.get(id)?.slice(0, 1) ?? []) };
  }
}

interface Glimpse {
  readonly operation: Operation;
  readonly generation: number;
  readonly host: string | null;
}

/** A generation never falls, and rises by no more than requests and roll-backs make it. */
function* generations({ tenant, of, goodTags }: Tenant): Generator<Finding> {
  for (const [id, operations] of of) {
    const glimpses: Glimpse[] = operations.flatMap((operation) =>
      viewsIn(operation).flatMap((seen) =>
        seen.id === id && seen.generation !== null ? [{ operation, generation: seen.generation, host: seen.host }] : [],
      ),
    );
    glimpses.sort((a, b) => a.operation.invokedMs - b.operation.invokedMs);
    const changes = operations.filter(({ request }) => isChange(request.kind));
    for (const [index, later] of glimpses.entries()) {
      const earlier = glimpses.slice(0, index).findLast(({ operation }) => isBefore(operation, later.operation));
      if (earlier !== undefined && later.generation < earlier.generation) {
        const ms = later.operation.invokedMs - (earlier.operation.answeredMs ?? 0);
        const words = `${id}: generation ${later.generation} was read ${ms.toFixed(1)} ms after generation ${earlier.generation}`;
        yield { rule: 'stale read', tenant, words, operations: [earlier.operation, later.operation] };
      }
      if (earlier === undefined || later.host !== earlier.host) continue;
      // A change that the earlier glimpse may have missed does not count as a jump.
      const first = glimpses.find(({ operation }) => isBefore(operation, earlier.operation));
      const between = changes.filter(
        (change) => !(first !== undefined && isBefore(change, first.operation)) && !isAfter(change, later.operation),
      );
      // The update may be older than both.
      const updates = changes.filter(
        (change) => mayRollBack(change.request, goodTags) && !isAfter(change, later.operation),
      );
      if (later.generation - earlier.generation <= between.length + updates.length) continue;
      const words = `${id}: from generation ${earlier.generation} to ${later.generation} with ${between.length} requests for it`;
      yield { rule: 'done twice', tenant, words, operations: [earlier.operation, ...between, later.operation] };
    }
  }
}

const isChange = (kind: Operation['request']['kind']): boolean =>
  kind === 'start' || kind === 'stop' || kind === 'delete' || kind === 'patch';

const mayRollBack = (request: Operation['request'], goodTags: History['goodTags']): boolean =>
  request.kind === 'patch' && !(request.change.tag !== undefined && goodTags.includes(request.change.tag));

/** A look's evidence about a container; `undefined` if it has none. */
function saidOf(id: string, look: Operation): 'absent' | Seen | undefined {
  const { request, result } = look;
  if (request.kind === 'list') {
    if (result.kind !== 'ok' || result.told.of !== 'list') return undefined;
    return result.told.containers.find((seen) => seen.id === id) ?? (result.told.isWhole ? 'absent' : undefined);
  }
  if (!('id' in request) || request.id !== id) return undefined;
  if (result.kind === 'refused') return result.code === 'not_found' ? 'absent' : undefined;
  return request.kind === 'get' ? viewsIn(look)[0] : undefined;
}

/**
 * Acknowledged writes that a later look does not show: the read was stale if an even later look
 * shows the write, else the write is lost.
 */
function* missed({ tenant, of, lists, operations: all }: Tenant): Generator<Finding> {
  for (const [id, operations] of of) {
    const looks = [...new Set([...operations, ...lists])].sort((a, b) => a.invokedMs - b.invokedMs);
    const writes = operations.filter(({ request }) => request.kind === 'create' || isChange(request.kind));
    for (const write of writes) {
      if (!isAnswered(write)) continue;
      const contradicts = (look: Operation): boolean => {
        const said = saidOf(id, look);
        return said !== undefined && isMissing(write, said) && !writes.some((other) => excuses(other, write, look));
      };
      const miss = looks.find((look) => isBefore(write, look) && contradicts(look));
      if (miss === undefined) continue;
      const isSeenLater = looks.some((look) => {
        const said = isAfter(look, miss) ? saidOf(id, look) : undefined;
        return said !== undefined && !isMissing(write, said);
      });
      const ms = (miss.invokedMs - (write.answeredMs ?? 0)).toFixed(1);
      const words = `${describeRequest(miss)} misses ${describeRequest(write)}, which was acknowledged ${ms} ms before it`;
      const rule = isSeenLater ? 'stale read' : 'lost write';
      yield { rule, tenant, words, operations: all.filter((one) => one === write || one === miss) };
    }
  }
}

/** The look contradicts the write, if no other write came between. */
function isMissing({ request }: Operation, said: 'absent' | Seen): boolean {
  switch (request.kind) {
    case 'create':
      return said === 'absent';
    case 'delete':
      return said !== 'absent' && !said.isRemoving;
    case 'start':
      return said !== 'absent' && said.desired === 'stopped';
    case 'stop':
      return said !== 'absent' && said.desired === 'running';
    default:
      return false;
  }
}

/** Another write that may have come between and undone this one. */
function excuses(other: Operation, write: Operation, look: Operation): boolean {
  if (other === write || isAfter(other, look)) return false;
  // A create that is repeated under its key returns the container of the first.
  const isRepeated = write.request.kind === 'create' && write.request.idempotencyKey !== null;
  if (isBefore(other, write) && !isRepeated) return false;
  const undoes = { create: 'delete', start: 'stop', stop: 'start' } as Readonly<Record<string, string>>;
  return undoes[write.request.kind] === other.request.kind;
}

/** A container that was gone never comes back. */
function* resurrected({ tenant, of, lists }: Tenant): Generator<Finding> {
  for (const [id, operations] of of) {
    const deletes = operations.filter(({ request }) => request.kind === 'delete');
    if (deletes.length === 0) continue;
    const looks = [...new Set([...operations, ...lists])].sort((a, b) => a.invokedMs - b.invokedMs);
    const gone = looks.find(
      (look) => saidOf(id, look) === 'absent' && deletes.some((one) => isAnswered(one) && isBefore(one, look)),
    );
    const back =
      gone && looks.find((look) => isBefore(gone, look) && ![undefined, 'absent'].includes(saidOf(id, look) as string));
    if (gone === undefined || back === undefined) continue;
    const ms = (back.invokedMs - (gone.answeredMs ?? 0)).toFixed(1);
    const words = `${id} is shown again ${ms} ms after it was gone`;
    yield { rule: 'resurrected', tenant, words, operations: [...deletes, gone, back] };
  }
}
