/**
 * A tenant as a sequential object: what each operation does to it, and what it may be answered. Two
 * things happen without a request: a host confirms that a container is gone, and the platform
 * places one. Both are steps of their own, taken when an answer needs them.
 */
import type { Operation, Quota, Seen } from './history.ts';

export interface Holding {
  readonly name: string;
  readonly host: string | null;
  /** Its earlier hosts. */
  readonly left: readonly (string | null)[];
  readonly desired: 'running' | 'stopped' | 'removed';
  readonly generation: number;
  readonly cpuMillis: number;
  readonly memBytes: number;
}

export class TenantState {
  readonly containers: ReadonlyMap<string, Holding>;
  /** By `Idempotency-Key`: the container created under it, present or gone. */
  readonly keys: ReadonlyMap<string, string>;
  /** Ids of removed containers, never used again. */
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

/** The judged part of an operation: a write, or a look, at an instant between call and answer. */
export type Item = Write | Look;

interface Interval {
  readonly index: number;
  readonly operation: Operation;
  readonly fromMs: number;
  /** Infinity: it may take effect at any time, or never. */
  readonly untilMs: number;
}
export interface Write extends Interval {
  readonly is: 'write';
  /** It was acknowledged, so it took effect by then. Else it may have, once. */
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
      /** Containers that it may have made; one, if it was answered. */
      readonly ids: readonly string[];
      /** Stands for a container that no answer shows; null: it made none such. */
      readonly unseenId: string | null;
      /** If not, its first host is unknown. */
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

/** `least`: without containers that are being removed, which may be gone by now. */
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

/** Every state that the write may lead to from this one; none: it cannot happen now. */
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

/** Its host confirmed the removal; undefined: it is not being removed. */
export const removeGone = (state: TenantState, id: string): TenantState | undefined =>
  state.containers.get(id)?.desired === 'removed' ? state.without(id) : undefined;

/**
 * Every placement is a new generation. The model allows no return to an earlier host: the checker
 * would take that for an operation done twice, so a history must be of hosts that keep a container
 * or lose it once.
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

/** Whether a look in this state may show this. */
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
