/**
 * Conclusions from later looks about earlier moments, so that the search skips what they
 * contradict: a container that a look finds was not gone before it, and one that a look misses and
 * a later look finds was not made before the first.
 */
import type { Item, Look } from './model.ts';

export class Evidence {
  /** By container: the last call that found it, removing or not. */
  readonly #lastFoundMs = new Map<string, number>();
  /** By container: the last call that found it not being removed. */
  readonly #lastWantedMs = new Map<string, number>();
  /** By container: the last call that missed it and was answered before another found it. */
  readonly #lastMissedMs = new Map<string, number>();
  #lastListMs = -Infinity;

  constructor(items: readonly Item[]) {
    for (const item of items) {
      const { fromMs } = item;
      for (const { id, isWanted } of foundBy(item)) {
        raise(this.#lastFoundMs, id, fromMs);
        if (isWanted) raise(this.#lastWantedMs, id, fromMs);
      }
      if (item.is === 'look' && item.sight.kind === 'list' && item.sight.isWhole) {
        this.#lastListMs = Math.max(this.#lastListMs, fromMs);
      }
    }
    for (const item of items) {
      if (item.is !== 'look') continue;
      for (const id of missedBy(item, this.#lastFoundMs)) {
        if (item.untilMs < (this.#lastFoundMs.get(id) ?? -Infinity)) raise(this.#lastMissedMs, id, item.fromMs);
      }
    }
  }

  mayBeGone(id: string, nowMs: number): boolean {
    return (this.#lastFoundMs.get(id) ?? -Infinity) <= nowMs;
  }

  mayBeUnwanted(id: string, nowMs: number): boolean {
    return (this.#lastWantedMs.get(id) ?? -Infinity) <= nowMs;
  }

  mayBeMade(id: string, nowMs: number): boolean {
    return (this.#lastMissedMs.get(id) ?? -Infinity) <= nowMs;
  }

  /**
   * A container that no look ever shows was not made before the last whole list: no client knew its
   * id, so none could have deleted it.
   */
  mayBeUnseen(nowMs: number): boolean {
    return this.#lastListMs <= nowMs;
  }
}

function raise(latest: Map<string, number>, id: string, ms: number): void {
  if (ms > (latest.get(id) ?? -Infinity)) latest.set(id, ms);
}

function foundBy(item: Item): readonly { readonly id: string; readonly isWanted: boolean }[] {
  if (item.is === 'write') {
    const { action } = item;
    if (!item.mustHappen || action.kind === 'create') return [];
    return [{ id: action.id, isWanted: action.kind !== 'delete' }];
  }
  switch (item.sight.kind) {
    case 'there':
      return [{ id: item.sight.container.id, isWanted: !item.sight.container.isRemoving }];
    case 'removing':
      return [{ id: item.sight.id, isWanted: false }];
    case 'list':
      return [...item.sight.containers.values()].map(({ id, isRemoving }) => ({ id, isWanted: !isRemoving }));
    default:
      return [];
  }
}

function missedBy({ sight }: Look, known: ReadonlyMap<string, number>): readonly string[] {
  if (sight.kind === 'absent') return [sight.id];
  if (sight.kind !== 'list' || !sight.isWhole) return [];
  return [...known.keys()].filter((id) => !sight.containers.has(id));
}
