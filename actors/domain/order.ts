/** A tenant's lists: their order, which is by `insertedAtMs`, then by id, and their pages. Pure. */
import { fill, line } from '../../lib/fill.ts';
import type { ContainerId, PeerId } from '../../schemas/ids.ts';
import { encodeCursor, type ListCursor } from '../../schemas/api/cursor.ts';
import { answer, type Turn } from './turn.ts';

/** What stands in a list. */
export interface Listed {
  readonly insertedAtMs: number;
  readonly id: ContainerId | PeerId;
}

export const isBefore = (item: Listed, cursor: ListCursor): boolean =>
  item.insertedAtMs < cursor.insertedAtMs || (item.insertedAtMs === cursor.insertedAtMs && item.id < cursor.id);

/** The later of the two. */
export const newestOf = (newest: ListCursor | null, { insertedAtMs, id }: Listed): ListCursor =>
  newest !== null && !isBefore(newest, { insertedAtMs, id }) ? newest : { insertedAtMs, id };

/**
 * Above every other of the tenant in the order of the list, whatever the clock and the gateways'
 * ids do: a page that ended before it was made never has to hold it.
 */
export function insertionMs(newest: ListCursor | null, id: Listed['id'], nowMs: number): number {
  if (newest === null || nowMs > newest.insertedAtMs) return nowMs;
  return id > newest.id ? newest.insertedAtMs : newest.insertedAtMs + 1;
}

/**
 * A page in the order of keys, from after one of them; the keys of a partition are in no other
 * order that lasts.
 */
export function pageByKey<T>(
  all: Iterable<T>,
  { keyOf, limit, after, maxBytes, render }: Omit<Page<T>, 'before'> & { keyOf: (item: T) => string; after: string },
): Turn {
  const rest = [...all]
    .filter((item) => keyOf(item) > after)
    .sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
  const { values, next } = fill(rest, { bytes: maxBytes, items: limit }, (item) => line(render(item)));
  return answer({ code: 'ok', body: `{"data":[${values.join(',')}],"more":${next !== undefined}}` });
}

export interface Page<T> {
  readonly limit: number;
  readonly before: ListCursor | null;
  readonly maxBytes: number;
  /** JSON. */
  readonly render: (item: T) => string;
}

/**
 * Newest first; `oldestFirst` is in the order of creation. A page ends at its limit, or before it
 * would outgrow a message.
 */
export function page<T extends Listed>(oldestFirst: Iterable<T>, { limit, before, maxBytes, render }: Page<T>): Turn {
  const all = [...oldestFirst].reverse();
  const rest = before === null ? all : all.filter((item) => isBefore(item, before));
  const { values, passed, next } = fill(rest, { bytes: maxBytes, items: limit }, (item) => line(render(item)));
  const last = rest[passed - 1];
  const more = last !== undefined && next !== undefined;
  const cursor = more ? `,"next_cursor":${JSON.stringify(encodeCursor(last))}` : '';
  return answer({ code: 'ok', body: `{"data":[${values.join(',')}]${cursor}}` });
}
