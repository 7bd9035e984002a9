/**
 * Searches for an order of a tenant's operations, each between its call and its answer, that the
 * model allows. The search walks along time and keeps every possible configuration: a state, and
 * which of the operations under way are placed. It follows Lowe's just-in-time linearization
 * ("Testing for linearizability", 2017): it places a write only when its answer comes, or when
 * another answer needs it; it places a look as soon as a state matches, because a look changes
 * nothing. So an operation without an answer costs nothing until an answer shows its effect.
 *
 * Before a write or a look, the search tries only operations that share a container or a name with
 * it, or with one that does, and so on. The test compares this with a search through every order.
 */
import { Evidence } from './evidence.ts';
import type { Terms } from './history.ts';
import {
  after,
  removeGone,
  dimensions,
  matches,
  place,
  shows,
  updateEnds,
  usageOf,
  TenantState,
  type Item,
  type Look,
  type Sight,
  type Write,
  type WriteAction,
} from './model.ts';

interface Configuration {
  readonly state: TenantState;
  /** Indexes of placed items, among those under way and those without an answer. */
  readonly placed: ReadonlySet<number>;
}

export type Verdict =
  | { readonly kind: 'linearizable' }
  /**
   * At the answer of `item` no order was left. `concurrent`: the items under way; `states`: those
   * possible just before.
   */
  | {
      readonly kind: 'broken';
      readonly item: Item;
      readonly concurrent: readonly Item[];
      readonly states: readonly TenantState[];
    }
  /** There are more configurations than the search tries. */
  | { readonly kind: 'undecided'; readonly item: Item };

const configurationsMax = 100_000;

const textOf = ({ state, placed }: Configuration): string =>
  `${[...placed].sort((a, b) => a - b).join(',')}\n${state.text}`;

class TooMany extends Error {}

export function search(items: readonly Item[], terms: Terms): Verdict {
  const rules: Rules = { ...terms, evidence: new Evidence(items) };
  const moments = momentsOf(items);
  const underWay = new Set<Item>();
  let possible: readonly Configuration[] = [{ state: new TenantState(), placed: new Set() }];
  for (const { item, isAnswer } of moments) {
    if (!isAnswer) {
      underWay.add(item);
      if (item.is === 'look') possible = possible.map((one) => withLooks(one, [item], rules));
      continue;
    }
    const before = possible;
    try {
      possible = isDoubtful(item) ? before : answered(before, item, underWay, rules);
    } catch (error) {
      if (error instanceof TooMany) return { kind: 'undecided', item };
      throw error;
    }
    underWay.delete(item);
    if (possible.length === 0) {
      const states = before.map(({ state }) => state);
      return { kind: 'broken', item, concurrent: [...underWay], states };
    }
    possible = forget(possible, item);
  }
  return { kind: 'linearizable' };
}

interface Rules extends Terms {
  readonly evidence: Evidence;
}

/**
 * Calls and answers along time. At the same instant calls come first and ends of doubtful writes
 * last: in doubt, operations count as concurrent.
 */
function momentsOf(items: readonly Item[]): { readonly item: Item; readonly isAnswer: boolean }[] {
  const moments = items.flatMap((item) => [
    { item, isAnswer: false, atMs: item.fromMs, rank: 0 },
    ...(item.untilMs === Infinity
      ? []
      : [{ item, isAnswer: true, atMs: item.untilMs, rank: isDoubtful(item) ? 2 : 1 }]),
  ]);
  return moments.sort((a, b) => a.atMs - b.atMs || a.rank - b.rank);
}

const isDoubtful = (item: Item): boolean => item.is === 'write' && !item.mustHappen;

/** An answered item is placed in every configuration, so its index can go. */
function forget(possible: readonly Configuration[], { index }: Item): readonly Configuration[] {
  if (!possible.some(({ placed }) => placed.has(index))) return possible;
  const kept = possible.map(({ state, placed }) => ({
    state,
    placed: new Set([...placed].filter((one) => one !== index)),
  }));
  return distinct(kept);
}

function distinct(configurations: readonly Configuration[]): readonly Configuration[] {
  if (configurations.length < 2) return configurations;
  return [...new Map(configurations.map((one) => [textOf(one), one])).values()];
}

/** Places the looks that match this state; that excludes nothing. */
function withLooks(one: Configuration, looks: Iterable<Look>, rules: Rules): Configuration {
  let placed: Set<number> | undefined;
  for (const { index, sight } of looks) {
    if (!one.placed.has(index) && matches(one.state, sight, rules.caps)) (placed ??= new Set(one.placed)).add(index);
  }
  return placed === undefined ? one : { state: one.state, placed };
}

/** The configurations with the item placed, from those possible before its answer. */
function answered(
  before: readonly Configuration[],
  item: Item,
  underWay: ReadonlySet<Item>,
  rules: Rules,
): readonly Configuration[] {
  const found: Configuration[] = [];
  for (const one of before) {
    for (const next of placing(one, item, underWay, rules)) found.push(next);
    if (found.length > configurationsMax) throw new TooMany();
  }
  return distinct(found);
}

/** Containers, names and the count: two operations that share one of them may interact. */
interface Interest {
  readonly tokens: Set<string>;
  /** Containers that a look misses, or that are in the way of a create. */
  readonly gone: Set<string>;
  /** The hosts of containers in looks. */
  readonly hosts: Map<string, string | null>;
  /** Containers whose update may have ended before. */
  readonly updates: Set<string>;
}

function* placing(
  start: Configuration,
  item: Item,
  underWay: ReadonlySet<Item>,
  rules: Rules,
): Generator<Configuration> {
  if (start.placed.has(item.index)) {
    yield start;
    return;
  }
  const looks = [...underWay].filter((other): other is Look => other.is === 'look');
  const writes = [...underWay].filter((other): other is Write => other.is === 'write' && other !== item);
  const seen = new Set<string>();
  const waiting: Configuration[] = [start];
  for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
    if (seen.size > configurationsMax) throw new TooMany();
    if (item.is === 'look') {
      if (one.placed.has(item.index)) {
        yield one;
        // Anything else that could come before it could come after it.
        continue;
      }
    } else {
      for (const state of after(one.state, item.action, rules)) {
        yield withLooks({ state, placed: new Set([...one.placed, item.index]) }, looks, rules);
      }
    }
    for (const next of steps(one, item, writes, looks, rules)) {
      if (seen.size === 0) seen.add(textOf(start));
      const text = textOf(next);
      if (seen.has(text)) continue;
      seen.add(text);
      waiting.push(next);
    }
  }
}

/** The next steps: writes under way, removals and placements that may interact with the item. */
function* steps(
  one: Configuration,
  item: Item,
  writes: readonly Write[],
  looks: readonly Look[],
  rules: Rules,
): Generator<Configuration> {
  const open = writes.filter(({ index }) => !one.placed.has(index));
  const unseen = looks.filter((look) => look !== item && !one.placed.has(look.index));
  const interest = interestOf(one.state, item, open, unseen, rules);
  const next = (state: TenantState, placed: ReadonlySet<number>): Configuration =>
    withLooks({ state, placed }, looks, rules);
  const { evidence } = rules;
  const nowMs = item.untilMs;
  for (const id of interest.gone) {
    const state = evidence.mayBeGone(id, nowMs) ? removeGone(one.state, id) : undefined;
    if (state !== undefined) yield next(state, one.placed);
  }
  for (const [id, host] of interest.hosts) {
    const state = place(one.state, id, host);
    if (state !== undefined) yield next(state, one.placed);
  }
  for (const id of interest.updates) {
    for (const state of updateEnds(one.state, id, rules.goodTags)) yield next(state, one.placed);
  }
  const alike = new Set<string>();
  for (const write of open) {
    if (!tokensOf(write).some((token) => interest.tokens.has(token))) continue;
    // Equal writes without an answer are interchangeable.
    if (!write.mustHappen && write.untilMs === Infinity) {
      const likeness = likenessOf(write);
      if (alike.has(likeness)) continue;
      alike.add(likeness);
    }
    const action = possibly(write, nowMs, evidence);
    if (action === undefined) continue;
    for (const state of after(one.state, action, rules)) {
      // A doubtful write that changes nothing need not be placed.
      if (state === one.state && !write.mustHappen) continue;
      yield next(state, new Set([...one.placed, write.index]));
    }
  }
}

/** Possible effects of a write without an answer, by later evidence. */
function possibly({ action, mustHappen }: Write, nowMs: number, evidence: Evidence): WriteAction | undefined {
  if (mustHappen) return action;
  switch (action.kind) {
    case 'create': {
      const seen = action.ids.filter((id) => evidence.mayBeMade(id, nowMs));
      const { unseenId } = action;
      return { ...action, ids: unseenId !== null && evidence.mayBeUnseen(nowMs) ? [...seen, unseenId] : seen };
    }
    case 'delete':
      return evidence.mayBeUnwanted(action.id, nowMs) ? action : undefined;
    default:
      return action;
  }
}

function likenessOf({ action }: Write): string {
  return JSON.stringify(action.kind === 'create' ? { ...action, ids: [], unseenId: null } : action);
}

/** Tokens of writes that use more of the quota, or less. */
const more = 'more';
const less = 'less';

function tokensOf({ action }: Write): readonly string[] {
  switch (action.kind) {
    case 'create':
      return [more, `name ${action.name}`, ...action.ids];
    case 'delete':
      return [less, action.id];
    case 'patch': {
      const isSized = action.change.cpuMillis !== undefined || action.change.memBytes !== undefined;
      return isSized ? [more, less, action.id] : [action.id];
    }
    default:
      return [action.id];
  }
}

function interestOf(
  state: TenantState,
  item: Item,
  open: readonly Write[],
  unseen: readonly Look[],
  rules: Rules,
): Interest {
  const interest: Interest = { tokens: new Set(), gone: new Set(), hosts: new Map(), updates: new Set() };
  if (item.is === 'look') want(state, item.sight, interest);
  else touch(state, item, interest, rules);
  const rest = new Set<Item>([...open, ...unseen]);
  for (let grew = true; grew;) {
    grew = false;
    for (const other of rest) {
      const isNear =
        other.is === 'write'
          ? tokensOf(other).some((token) => interest.tokens.has(token))
          : isAbout(state, other.sight, interest.tokens);
      if (!isNear) continue;
      rest.delete(other);
      if (other.is === 'write') touch(state, other, interest, rules);
      else want(state, other.sight, interest);
      grew = true;
    }
  }
  return interest;
}

/** Adds what a write is about, and what must be gone before it. */
function touch(state: TenantState, write: Write, { tokens, gone, updates }: Interest, rules: Rules): void {
  const { action } = write;
  if (action.kind !== 'create') {
    tokens.add(action.id);
    updates.add(action.id);
    if (action.kind !== 'patch') return;
    if (after(state, action, rules).length === 0) tokens.add(less);
    return;
  }
  for (const id of action.ids) tokens.add(id);
  tokens.add(`name ${action.name}`);
  const holder = state.holderOf(action.name);
  if (holder !== undefined) {
    tokens.add(holder);
    gone.add(holder);
  } else if (after(state, action, rules).length === 0) tokens.add(less);
}

/** Adds what a look shows that differs from this state. */
function want(state: TenantState, sight: Sight, { tokens, gone, hosts, updates }: Interest): void {
  const wantThere = (id: string, name: string | null): void => {
    tokens.add(id);
    if (name === null) return;
    tokens.add(`name ${name}`);
    const holder = state.holderOf(name);
    if (holder === undefined || holder === id) return;
    tokens.add(holder);
    gone.add(holder);
  };
  switch (sight.kind) {
    case 'there': {
      const { id, name, host } = sight.container;
      wantThere(id, name);
      hosts.set(id, host);
      updates.add(id);
      return;
    }
    case 'absent':
      tokens.add(sight.id);
      gone.add(sight.id);
      return;
    case 'removing':
      tokens.add(sight.id);
      return;
    case 'list':
      for (const [id, seen] of sight.containers) {
        const holding = state.containers.get(id);
        if (holding !== undefined && shows(seen, holding)) continue;
        wantThere(id, seen.name);
        hosts.set(id, seen.host);
        updates.add(id);
      }
      for (const id of state.containers.keys()) {
        if (sight.containers.has(id) || !sight.isWhole) continue;
        tokens.add(id);
        gone.add(id);
      }
      return;
    case 'quota': {
      const { least, most } = usageOf(state);
      if (dimensions.some((one) => sight.quota.usage[one] > most[one])) tokens.add(more);
      if (dimensions.some((one) => sight.quota.usage[one] < least[one])) tokens.add(less);
      return;
    }
    case 'over quota':
      tokens.add(more);
      return;
    case 'over quota by change':
      tokens.add(more);
      tokens.add(sight.id);
      return;
    case 'declared otherwise':
      tokens.add(sight.id);
      updates.add(sight.id);
      return;
    case 'name taken':
      tokens.add(`name ${sight.name}`);
      return;
    case 'key spent': {
      const id = state.keys.get(sight.key);
      if (id === undefined) tokens.add(more);
      else {
        tokens.add(id);
        gone.add(id);
      }
      return;
    }
  }
}

/** True if a change of any of these may show in the look. */
function isAbout(state: TenantState, sight: Sight, tokens: ReadonlySet<string>): boolean {
  switch (sight.kind) {
    case 'there':
      return tokens.has(sight.container.id);
    case 'absent':
    case 'removing':
    case 'declared otherwise':
      return tokens.has(sight.id);
    case 'list':
    case 'quota':
    case 'over quota':
    case 'over quota by change':
      return true;
    case 'name taken':
      return tokens.has(`name ${sight.name}`) || tokens.has(state.holderOf(sight.name) ?? '');
    case 'key spent':
      return tokens.has(state.keys.get(sight.key) ?? '');
  }
}
