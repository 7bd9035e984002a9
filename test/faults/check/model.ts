/**
 * A tenant as a sequential object: what each operation does to it, and what it may be answered.
 * Three things happen without a request: a host confirms that a container is gone, the platform
 * places one, and an update ends. They are steps of their own, taken when an answer needs them.
 */
import {
  isSameVersion,
  type Declared,
  type Operation,
  type Quota,
  type Seen,
  type Terms,
  type Version,
} from './history.ts';

export interface Holding {
  readonly name: string;
  readonly host: string | null;
  /** Its earlier hosts. */
  readonly left: readonly (string | null)[];
  readonly desired: 'running' | 'stopped' | 'removed';
  readonly generation: number;
  readonly version: Version;
  /**
   * Versions that a roll-back may restore: the version before the update, or before one whose end
   * no answer has shown. Empty if no update is under way.
   */
  readonly fallbacks: readonly Version[];
  /** `done`: it is over, and still shown as under way while its version has not run. */
  readonly update: NonNullable<Seen['update']>;
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
      .map(([id, holding]) => `${id} ${textOf(holding)}`)
      .sort()
      .join('\n');
    return this.#text;
  }
}

const versionText = ({ tag, cpuMillis, memBytes, filling }: Version): string =>
  `${tag}/${cpuMillis}/${memBytes}/${filling ?? ''}`;
const textOf = ({ host, desired, generation, version, fallbacks, update }: Holding): string =>
  [host, desired, generation, versionText(version), update, ...fallbacks.map(versionText)].join(' ');

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
  /** True if it was acknowledged, so it took effect by then. Else it may have, once. */
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
      /** Id of a possible container that no answer shows; null if there can be none. */
      readonly unseenId: string | null;
      /** If not, its first host is unknown. */
      readonly isAnswered: boolean;
      readonly host: string | null;
      readonly version: Version;
      readonly key: string | null;
    }
  | { readonly kind: 'start' | 'stop' | 'delete'; readonly id: string }
  | { readonly kind: 'patch'; readonly id: string; readonly change: Partial<Version>; readonly read: Declared | null };

export type Sight =
  | { readonly kind: 'there'; readonly container: Seen }
  | { readonly kind: 'absent'; readonly id: string }
  | { readonly kind: 'removing'; readonly id: string }
  | { readonly kind: 'list'; readonly containers: ReadonlyMap<string, Seen>; readonly isWhole: boolean }
  | { readonly kind: 'quota'; readonly quota: Quota }
  | { readonly kind: 'name taken'; readonly name: string }
  | { readonly kind: 'key spent'; readonly key: string }
  | { readonly kind: 'over quota'; readonly version: Version }
  | { readonly kind: 'over quota by change'; readonly id: string; readonly change: Partial<Version> }
  /** It is declared otherwise than the client had read. */
  | { readonly kind: 'declared otherwise'; readonly id: string; readonly read: Declared };

type Range = { readonly [Bound in 'least' | 'most']: Quota['usage'] };

/** Amounts of one container: the larger of both versions until its update is over. */
function amountsOf({ version, fallbacks, desired }: Holding): Range {
  const versions = [version, ...fallbacks];
  const of = (pick: (...amounts: number[]) => number, containers: number): Quota['usage'] => ({
    containers,
    cpuMillis: pick(...versions.map(({ cpuMillis }) => cpuMillis)),
    memBytes: pick(...versions.map(({ memBytes }) => memBytes)),
  });
  // It may be gone by now.
  const least = desired === 'removed' ? { containers: 0, cpuMillis: 0, memBytes: 0 } : of(Math.min, 1);
  return { least, most: of(Math.max, 1) };
}

/** The least and the most that a tenant may be using: removals and updates may be over by now. */
export function usageOf(state: TenantState): Range {
  const least = { containers: 0, cpuMillis: 0, memBytes: 0 };
  const most = { containers: 0, cpuMillis: 0, memBytes: 0 };
  for (const holding of state.containers.values()) {
    const amounts = amountsOf(holding);
    for (const dimension of dimensions) {
      least[dimension] += amounts.least[dimension];
      most[dimension] += amounts.most[dimension];
    }
  }
  return { least, most };
}

export const dimensions = ['containers', 'cpuMillis', 'memBytes'] as const;

/** Every state that the write may lead to from this one; empty if it can't happen now. */
export function after(state: TenantState, action: WriteAction, terms: Terms): readonly TenantState[] {
  const { caps, startsAgain } = terms;
  switch (action.kind) {
    case 'create':
      return afterCreate(state, action, terms);
    case 'start':
    case 'stop': {
      const holding = state.containers.get(action.id);
      if (holding === undefined || holding.desired === 'removed') return [];
      const desired = action.kind === 'start' ? 'running' : 'stopped';
      if (holding.desired === desired) {
        if (desired === 'stopped' || startsAgain !== true) return [state];
        return [state, state.with(action.id, { ...holding, generation: holding.generation + 1 })];
      }
      const ended = desired === 'stopped' ? over(holding) : holding;
      return [state.with(action.id, { ...ended, desired, generation: holding.generation + 1 })];
    }
    case 'delete': {
      const holding = state.containers.get(action.id);
      if (holding === undefined) return [];
      if (holding.desired === 'removed') return [state];
      return [state.with(action.id, { ...over(holding), desired: 'removed', generation: holding.generation + 1 })];
    }
    case 'patch':
      return afterPatch(state, action, caps);
  }
}

/** The holding after the end of its update, with the new version. */
const over = (holding: Holding): Holding =>
  holding.fallbacks.length === 0 ? holding : { ...holding, fallbacks: [], update: 'done' };

const mayBeAsRead = ({ version, desired }: Holding, read: Declared): boolean =>
  isSameVersion(version, read.version) && (read.desired ?? desired) === desired;

/** Certainly. */
const isAsRead = ({ version, desired }: Holding, read: Declared): boolean =>
  isSameVersion(version, read.version) && read.desired === desired;

function afterPatch(
  state: TenantState,
  { id, change, read }: Extract<WriteAction, { kind: 'patch' }>,
  caps: Quota['caps'],
): readonly TenantState[] {
  const holding = state.containers.get(id);
  if (holding === undefined || holding.desired === 'removed') return [];
  if (read !== null && !mayBeAsRead(holding, read)) return [];
  const version = { ...holding.version, ...change };
  if (isSameVersion(version, holding.version)) return [state];
  const [{ least }, own] = [usageOf(state), amountsOf(holding)];
  const takes = (one: 'cpuMillis' | 'memBytes'): number => least[one] - own.least[one] + version[one];
  if (sized.some((one) => takes(one) > (caps[one] ?? Infinity))) return [];
  // Only its host knows whether it runs; what does not is replaced at once.
  const isUnderWay = holding.desired === 'running';
  const fallbacks = isUnderWay ? distinct([...holding.fallbacks, holding.version], version) : [];
  const update = isUnderWay ? 'under way' : 'done';
  return [state.with(id, { ...holding, version, fallbacks, update, generation: holding.generation + 1 })];
}

const sized = ['cpuMillis', 'memBytes'] as const;

const distinct = (versions: readonly Version[], except: Version): readonly Version[] =>
  versions.filter(
    (one, index) => !isSameVersion(one, except) && versions.findIndex((other) => isSameVersion(one, other)) === index,
  );

function afterCreate(
  state: TenantState,
  { name, ids, isAnswered, host, version, key }: Extract<WriteAction, { kind: 'create' }>,
  { caps, moves }: Terms,
): readonly TenantState[] {
  const earlier = key === null ? undefined : state.keys.get(key);
  if (earlier !== undefined) return ids.includes(earlier) && state.containers.has(earlier) ? [state] : [];
  if (state.holderOf(name) !== undefined) return [];
  const { least } = usageOf(state);
  const more = { containers: 1, ...version };
  if (dimensions.some((dimension) => least[dimension] + more[dimension] > (caps[dimension] ?? Infinity))) return [];
  const declared: Holding = {
    name,
    host: null,
    left: [],
    desired: 'running',
    generation: 1,
    version,
    fallbacks: [],
    update: 'none',
  };
  const placed: Holding = { ...declared, host: host ?? 'unseen', generation: 2 };
  const shown = host === null ? declared : placed;
  const moved = host === null || moves !== true ? [] : [declared, { ...placed, host: 'unseen' }];
  const made = isAnswered ? [shown, ...moved] : [declared, placed];
  return ids
    .filter((id) => !state.containers.has(id) && !state.gone.has(id))
    .flatMap((id) => made.map((holding) => state.with(id, holding, key)));
}

/** State after its host confirmed the removal; `undefined` if it is not being removed. */
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

/** Possible ends of an update by now: the new version stays, or a former one is back. */
export function updateEnds(state: TenantState, id: string, goodTags: readonly string[]): readonly TenantState[] {
  const holding = state.containers.get(id);
  if (holding === undefined || holding.fallbacks.length === 0) return [];
  const stays = state.with(id, over(holding));
  if (goodTags.includes(holding.version.tag)) return [stays];
  const back = { ...holding, fallbacks: [], update: 'rolled back', generation: holding.generation + 1 } as const;
  return [stays, ...holding.fallbacks.map((version) => state.with(id, { ...back, version }))];
}

const isShownAs = (seen: Seen['update'], update: Holding['update']): boolean =>
  seen === update || (update === 'done' && seen === 'under way');

export const shows = (seen: Seen, holding: Holding): boolean =>
  (seen.name === null || seen.name === holding.name) &&
  (seen.version === null || isSameVersion(seen.version, holding.version)) &&
  (seen.update === null || isShownAs(seen.update, holding.update)) &&
  seen.host === holding.host &&
  seen.isRemoving === (holding.desired === 'removed') &&
  (seen.desired === null || seen.desired === holding.desired) &&
  (seen.generation === null || seen.generation === holding.generation);

/** True if a look in this state may show this. */
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
      const more = { containers: 1, ...sight.version };
      return dimensions.some((one) => most[one] + more[one] > (caps[one] ?? Infinity));
    }
    case 'over quota by change': {
      const holding = containers.get(sight.id);
      if (holding === undefined) return false;
      const [{ most }, own] = [usageOf(state), amountsOf(holding)];
      const version = { ...holding.version, ...sight.change };
      return sized.some((one) => {
        const more = version[one] - own.least[one];
        return more > 0 && most[one] + more > (caps[one] ?? Infinity);
      });
    }
    case 'declared otherwise': {
      const holding = containers.get(sight.id);
      return holding !== undefined && holding.desired !== 'removed' && !isAsRead(holding, sight.read);
    }
  }
}
