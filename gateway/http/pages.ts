/**
 * Lists whose items are spread over all partitions: each partition gives a page ordered by key, and
 * these are merged into one. Pure.
 */
import type { KeyPage } from '../../schemas/wire/answers.ts';
import { decodeKeyCursor, encodeKeyCursor } from '../../schemas/api/cursor.ts';
import { invalid, type Result, type TextResult } from './respond.ts';

export const wrongCursor = invalid({ cursor: ['is not a valid cursor; use the `next_cursor` of the page before'] });

/**
 * If a partition's page ends early, items of other partitions with later keys wait for the next
 * page, because the partition may have keys before them.
 */
export function mergePages<T>(pages: readonly KeyPage<T>[], limit: number, keyOf: (item: T) => string): KeyPage<T> {
  const cuts = pages.flatMap(({ data, more }) => (more ? data.slice(-1).map(keyOf) : [])).sort();
  const [end] = cuts;
  const all = pages.flatMap(({ data }) => data);
  const shown = all
    .filter((item) => end === undefined || keyOf(item) <= end)
    .sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1))
    .slice(0, limit);
  return { data: shown, more: end !== undefined || shown.length < all.length };
}

/** @param cursor of the next page; `undefined`: this one is the last */
export const pageResult = (data: unknown, cursor: string | undefined): TextResult => ({
  code: 'ok',
  body: JSON.stringify({ data, next_cursor: cursor }),
});

export interface Keys<T> {
  readonly isKey: (text: string) => boolean;
  readonly keyOf: (item: T) => string;
}

/**
 * A page of a list by key.
 * @param pagesAfter the pages of all who have a part of the list, from after this key (empty: from
 *   the beginning), or the failure of one of them
 */
export async function listByKey<T>(
  { cursor, limit }: { readonly cursor: string | undefined; readonly limit: number },
  { isKey, keyOf }: Keys<T>,
  pagesAfter: (after: string) => Promise<readonly KeyPage<T>[] | Result>,
): Promise<Result> {
  const after = cursor === undefined ? '' : decodeKeyCursor(cursor, isKey);
  if (after === undefined) return wrongCursor;
  const pages = await pagesAfter(after);
  if ('code' in pages) return pages;
  const { data, more } = mergePages(pages, limit, keyOf);
  const last = data.at(-1);
  return pageResult(data, more && last !== undefined ? encodeKeyCursor(keyOf(last)) : undefined);
}
