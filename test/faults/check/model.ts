/**
 * A tenant as a sequential object: what each operation does to it, and what it may then have been
 * answered. Two things happen unasked: a host confirms that a container is gone, and the platform
 * places one. Both are steps of their own, taken when what somebody saw needs them.
 */
import type { Operation, Quota, Seen } from './history.ts';

export interface Holding {
  readonly name: string;
  readonly host: string | null;
  /** Where it was before. */
  readonly left: readonly (string | null)[];
  readonly desired: 'running' | 'stopped' | 'removed';
  readonly generation: number;
  readonly cpuMillis: number;
  readonly memBytes: number;
}

export class TenantState {
  readonly containers: ReadonlyMap<string, Holding>;
  /** By `Idempotency-Key`, the container that was created under it, there or gone. */
  readonly keys: ReadonlyMap<string, string>;
  /** Ids that nothing is made under again. */
  readonly gone: ReadonlySet<string>;
  #text: string | undefined;

  constructor(
    containers: ReadonlyMap<string, Holding> = new Map(),
    keys: ReadonlyMap<string, string> = new Map(),
    gone: ReadonlySet<string> = new Set(),
  ) {
    this.containers = containers;
    this.keys = keys;
    this.gone = gone;
  }

  with(id: string, holding: Holding, key: string | null = null): TenantState {
    const keys = key === null ? this.keys : new Map(this.keys).set(key, id);
    return new TenantState(new Map(this.containers).set(id, holding), keys, this.gone);
  }

  without(id: string): TenantState {
    const containers = new Map(this.containers);
    containers.delete(id);
    return new TenantState(containers, this.keys, new Set(this.gone).add(id));
  }

  holderOf(name: string): string | undefined {
    for (const [id, holding] of this.containers) if (holding.name === name) return id;
    return undefined;
  }

  /** Equal texts, equal states. */
  get text(): string {
    this.#text ??= [...this.containers]
      .map(([id, { host, desired, generation }]) => `${id} ${host} ${desired} ${generation}`)
      .sort()
      .join('\n');
    return this.#text;
  }
}

/**
 * What is judged of an operation: a write, done somewhere between its call and its answer; or a
 * look at what is there.
 */
export type Item = Write | Look;

interface Interval {
  readonly index: number;
  readonly operation: Operation;
  readonly fromMs: number;
  /** Infinity: it may take effect whenever it does, or never. */
  readonly untilMs: number;
}
export interface Write extends Interval {
  readonly is: 'write';
  /** It was acknowledged, so it has taken effect by then. Else it may have, once. */
  readonly mustHappen: boolean;
  readonly action: WriteAction;
}
export interface Look extends Interval {
  readonly is: 'look';
  readonly sight: Sight;
}

export type WriteAction =
  | {
      readonly kind: 'create';
      readonly name: string;
      /** Those that it may have made: one, where it was answered. */
      readonly ids: readonly string[];
      /** What stands for one that nobody ever saw; null where that can't be. */
      readonly unseenId: string | null;
      /** Else nobody knows where it was placed at first. */
      readonly isAnswered: boolean;
      readonly host: string | null;
      readonly cpuMillis: number;
      readonly memBytes: number;
      readonly key: string | null;
    }
  | { readonly kind: 'start' | 'stop' | 'delete'; readonly id: string };

export type Sight =
  | { readonly kind: 'there'; readonly container: Seen }
  | { readonly kind: 'absent'; readonly id: string }
  | { readonly kind: 'removing'; readonly id: string }
  | { readonly kind: 'list'; readonly containers: ReadonlyMap<string, Seen>; readonly isWhole: boolean }
  | { readonly kind: 'quota'; readonly quota: Quota }
  | { readonly kind: 'name taken'; readonly name: string }
  | { readonly kind: 'key spent'; readonly key: string }
  | { readonly kind: 'over quota'; readonly cpuMillis: number; readonly memBytes: number };

/** `least`: without those that are being removed, which may be gone by now. */
export function usageOf(state: TenantState): { readonly least: Quota['usage']; readonly most: Quota['usage'] } {
  const least = { containers: 0, cpuMillis: 0, memBytes: 0 };
  const most = { containers: 0, cpuMillis: 0, memBytes: 0 };
  for (const { desired, cpuMillis, memBytes } of state.containers.values()) {
    for (const sum of desired === 'removed' ? [most] : [least, most]) {
      sum.containers++;
      sum.cpuMillis += cpuMillis;
      sum.memBytes += memBytes;
    }
  }
  return { least, most };
}

export const dimensions = ['containers', 'cpuMillis', 'memBytes'] as const;

/** Every state that the write may lead to from this one; none where it can't be done now. */
export function after(state: TenantState, action: WriteAction, caps: Quota['caps']): readonly TenantState[] {
  switch (action.kind) {
    case 'create':
      return afterCreate(state, action, caps);
    case 'start':
    case 'stop': {
      const holding = state.containers.get(action.id);
      if (holding === undefined || holding.desired === 'removed') return [];
      const desired = action.kind === 'start' ? 'running' : 'stopped';
      if (holding.desired === desired) return [state];
      return [state.with(action.id, { ...holding, desired, generation: holding.generation + 1 })];
    }
    case 'delete': {
      const holding = state.containers.get(action.id);
      if (holding === undefined) return [];
      if (holding.desired === 'removed') return [state];
      return [state.with(action.id, { ...holding, desired: 'removed', generation: holding.generation + 1 })];
    }
  }
}

function afterCreate(
  state: TenantState,
  { name, ids, isAnswered, host, cpuMillis, memBytes, key }: Extract<WriteAction, { kind: 'create' }>,
  caps: Quota['caps'],
): readonly TenantState[] {
  const earlier = key === null ? undefined : state.keys.get(key);
  if (earlier !== undefined) return ids.includes(earlier) && state.containers.has(earlier) ? [state] : [];
  if (state.holderOf(name) !== undefined) return [];
  const { least } = usageOf(state);
  const more = { containers: 1, cpuMillis, memBytes };
  if (dimensions.some((dimension) => least[dimension] + more[dimension] > (caps[dimension] ?? Infinity))) return [];
  const declared: Holding = { name, host: null, left: [], desired: 'running', generation: 1, cpuMillis, memBytes };
  const placed: Holding = { ...declared, host: host ?? 'unseen', generation: 2 };
  const made = isAnswered ? [host === null ? declared : placed] : [declared, placed];
  return ids
    .filter((id) => !state.containers.has(id) && !state.gone.has(id))
    .flatMap((id) => made.map((holding) => state.with(id, holding, key)));
}

/** Its host has confirmed; undefined where nobody asked for its removal. */
export const removeGone = (state: TenantState, id: string): TenantState | undefined =>
  state.containers.get(id)?.desired === 'removed' ? state.without(id) : undefined;

/**
 * Every placement is a new generation. Two of one container between two looks at it, or one back to
 * where it was, would be taken for a request that was done twice: a history is of hosts that keep
 * what they have, or lose it once.
 */
export function place(state: TenantState, id: string, host: string | null): TenantState | undefined {
  const holding = state.containers.get(id);
  if (holding === undefined || holding.host === host || holding.left.includes(host)) return undefined;
  return state.with(id, {
    ...holding,
    host,
    left: [...holding.left, holding.host],
    generation: holding.generation + 1,
  });
}

export const shows = (seen: Seen, holding: Holding): boolean =>
  (seen.name === null || seen.name === holding.name) &&
  seen.host === holding.host &&
  seen.isRemoving === (holding.desired === 'removed') &&
  (seen.desired === null || seen.desired === holding.desired) &&
  (seen.generation === null || seen.generation === holding.generation);

/** Whether the look may have been made in this state. */
export function matches(state: TenantState, sight: Sight, caps: Quota['caps']): boolean {
  const { containers } = state;
  switch (sight.kind) {
    case 'there': {
      const holding = containers.get(sight.container.id);
      return holding !== undefined && shows(sight.container, holding);
    }
    case 'absent':
      return !containers.has(sight.id);
    case 'removing':
      return containers.get(sight.id)?.desired === 'removed';
    case 'list': {
      if (sight.isWhole ? sight.containers.size !== containers.size : sight.containers.size > containers.size) {
        return false;
      }
      for (const [id, seen] of sight.containers) {
        const holding = containers.get(id);
        if (holding === undefined || !shows(seen, holding)) return false;
      }
      return true;
    }
    case 'quota': {
      const { least, most } = usageOf(state);
      const { usage } = sight.quota;
      return dimensions.every((one) => usage[one] >= least[one] && usage[one] <= most[one]);
    }
    case 'name taken':
      return state.holderOf(sight.name) !== undefined;
    case 'key spent': {
      const id = state.keys.get(sight.key);
      return id !== undefined && !containers.has(id);
    }
    case 'over quota': {
      const { most } = usageOf(state);
      const more = { containers: 1, cpuMillis: sight.cpuMillis, memBytes: sight.memBytes };
      return dimensions.some((one) => most[one] + more[one] > (caps[one] ?? Infinity));
    }
  }
}
