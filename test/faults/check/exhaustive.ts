/**
 * Tries every order (Wing and Gong); too slow for anything but the test of search.ts.
 */
import type { Terms } from './history.ts';
import {
  after,
  removeGone,
  matches,
  place,
  TenantState,
  updateEnds,
  type Item,
  type Sight,
  type WriteAction,
} from './model.ts';

export function isLinearizable(items: readonly Item[], terms: Terms): boolean {
  const { caps, goodTags } = terms;
  const seen = new Set<string>();
  const hosts = new Map<string, Set<string | null>>();
  for (const item of items) {
    for (const { id, host } of item.is === 'look' ? viewsOf(item.sight) : []) {
      hosts.set(id, (hosts.get(id) ?? new Set()).add(host));
    }
  }
  const mustBePlaced = (item: Item): boolean => item.is === 'look' || item.mustHappen;

  const go = (state: TenantState, left: readonly Item[]): boolean => {
    if (!left.some(mustBePlaced)) return true;
    const text = `${left.map(({ index }) => index).join(',')}\n${state.text}`;
    if (seen.has(text)) return false;
    seen.add(text);
    const firstAnswerMs = Math.min(...left.filter(mustBePlaced).map(({ untilMs }) => untilMs));
    for (const item of left) {
      if (item.fromMs > firstAnswerMs) continue;
      const rest = left.filter((other) => other !== item);
      if (item.is === 'look') {
        if (matches(state, item.sight, caps) && go(state, rest)) return true;
      } else if (item.untilMs >= latestCall(items, left) || item.untilMs === Infinity || item.mustHappen) {
        if (after(state, withUnseen(item.action), terms).some((next) => go(next, rest))) return true;
      }
    }
    for (const id of state.containers.keys()) {
      const without = removeGone(state, id);
      if (without !== undefined && go(without, left)) return true;
      if (updateEnds(state, id, goodTags).some((next) => go(next, left))) return true;
      for (const host of hosts.get(id) ?? []) {
        const placed = place(state, id, host);
        if (placed !== undefined && placements(state, id) < 3 && go(placed, left)) return true;
      }
    }
    return false;
  };
  return go(new TenantState(), items);
}

const placements = (state: TenantState, id: string): number => state.containers.get(id)?.left.length ?? 0;

/** An operation takes effect no earlier than the last call among those already placed. */
const latestCall = (items: readonly Item[], left: readonly Item[]): number =>
  Math.max(-Infinity, ...items.filter((item) => !left.includes(item)).map(({ fromMs }) => fromMs));

const viewsOf = (sight: Sight) =>
  sight.kind === 'there' ? [sight.container] : sight.kind === 'list' ? [...sight.containers.values()] : [];

const withUnseen = (action: WriteAction): WriteAction =>
  action.kind === 'create' && action.unseenId !== null ? { ...action, ids: [...action.ids, action.unseenId] } : action;
