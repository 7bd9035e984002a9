/** Cursors of lists, as clients see them. */
import { isContainerId, type ContainerId, type PeerId } from '../ids.ts';

/**
 * Where a page ended. The next page begins with older items, whether or not this one still exists.
 */
export interface ListCursor {
  readonly insertedAtMs: number;
  readonly id: ContainerId | PeerId;
}

/** The cursor of a list by time: base64url of `<insertedAtMs>.<id>`. */
export const encodeCursor = ({ insertedAtMs, id }: ListCursor): string =>
  btoa(`${insertedAtMs}.${id}`).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

/** Undefined: the text is not a cursor of this API. */
export function decodeCursor(text: string): ListCursor | undefined {
  // atob throws for a length of 1 modulo 4, which no base64 has.
  if (!/^[A-Za-z0-9_-]{20,100}$/.test(text) || text.length % 4 === 1) return undefined;
  const [, ms, id] = /^(\d{1,15})\.(.+)$/.exec(atob(text.replaceAll('-', '+').replaceAll('_', '/'))) ?? [];
  return ms !== undefined && id !== undefined && isContainerId(id) ? { insertedAtMs: Number(ms), id } : undefined;
}

/** The cursor of a list by key: base64url of the last key on the page. */
export const encodeKeyCursor = (key: string): string =>
  btoa(key).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

/** Undefined: the text is not a cursor of this API. */
export function decodeKeyCursor(text: string, isKey: (key: string) => boolean): string | undefined {
  if (!/^[A-Za-z0-9_-]{2,100}$/.test(text) || text.length % 4 === 1) return undefined;
  const key = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return isKey(key) ? key : undefined;
}
