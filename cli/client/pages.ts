/** Lists that come in pages. */
import { bodyOf, type Answer } from './api.ts';

interface Page<T> {
  readonly data: readonly T[];
  readonly next_cursor?: string;
}

/** Every item of a list, page by page: a page is asked for when the one before it is used up. */
export async function* itemsOf<T>(
  ask: (query: { readonly cursor?: string }) => Promise<Answer<Page<T>>>,
): AsyncGenerator<T, void> {
  for (let query: { readonly cursor?: string } | undefined = {}; query !== undefined;) {
    const page: Page<T> = await bodyOf(ask(query));
    yield* page.data;
    query = page.next_cursor === undefined ? undefined : { cursor: page.next_cursor };
  }
}

/** All items of a list. */
export async function allOf<T>(ask: (query: { readonly cursor?: string }) => Promise<Answer<Page<T>>>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of itemsOf(ask)) items.push(item);
  return items;
}
