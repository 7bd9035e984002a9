/** Pages of lists: as many items as a page may have and a message holds. Pure. */
import { fill, line, type Bounds } from '../../lib/fill.ts';
import { encodeCursor, type ListCursor } from '../../schemas/api/cursor.ts';
import { limits } from '../../schemas/limits.ts';
import type { Listed, ListView } from './order.ts';
import { answer, type Turn } from './turn.ts';

export interface Page<T> {
  readonly limit: number;
  readonly before: ListCursor | null;
  readonly maxBytes: number;
  /** JSON. */
  readonly render: (item: T) => string;
  /** By default, every item is in the list. */
  readonly matches?: (item: T) => boolean;
}

/**
 * A page in the order of keys, from after one of them; the keys of a partition are in no other
 * order that lasts.
 */
export function pageByKey<T>(
  all: Iterable<T>,
  {
    keyOf,
    limit,
    after,
    maxBytes,
    render,
  }: Omit<Page<T>, 'before' | 'matches'> & { keyOf: (item: T) => string; after: string },
): Turn {
  // One more item shows that there are more. Items that can't be on the page are dropped at once,
  // so that a hundred thousand are not all sorted.
  const most = limit + 1;
  let rest: (readonly [key: string, item: T])[] = [];
  let end: string | undefined;
  const cut = (): void => {
    rest = rest.sort(([one], [other]) => (one < other ? -1 : 1)).slice(0, most);
    if (rest.length === most) end = rest.at(-1)?.[0];
  };
  for (const item of all) {
    const key = keyOf(item);
    if (key <= after || (end !== undefined && key > end)) continue;
    rest.push([key, item]);
    if (rest.length >= 2 * most) cut();
  }
  cut();
  return pageOf(rest, { bytes: maxBytes, items: limit }, ([, item]) => render(item));
}

/** A page of as many items as there is room for. `more`: `true` if some are left. */
export function pageOf<T>(items: Iterable<T>, bounds: Bounds, render: (item: T) => string): Turn {
  const { values, next } = fill(items, bounds, (item) => line(render(item)));
  return answer({ code: 'ok', body: `{"data":[${values.join(',')}],"more":${next !== undefined}}` });
}

/**
 * A page ends at its limit, before it would outgrow a message, or when `listScan` items were looked
 * at, however few of them match.
 */
export function page<T extends Listed>(
  list: ListView<T>,
  { limit, before, maxBytes, render, matches = () => true }: Page<T>,
): Turn {
  const seen: T[] = [];
  let isCut = false;
  function* bounded(): Generator<T, void, void> {
    for (const item of list.newestFirst(before)) {
      isCut = seen.length >= limits.listScan;
      if (isCut) return;
      yield item;
    }
  }
  const { values, passed, next } = fill(bounded(), { bytes: maxBytes, items: limit }, (item) => {
    seen.push(item);
    return matches(item) ? line(render(item)) : undefined;
  });
  const last = seen[passed - 1];
  const more = last !== undefined && (next !== undefined || isCut);
  const cursor = more ? `,"next_cursor":${JSON.stringify(encodeCursor(last))}` : '';
  return answer({ code: 'ok', body: `{"data":[${values.join(',')}]${cursor}}` });
}
