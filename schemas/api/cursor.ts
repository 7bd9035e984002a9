/**
 * Cursors of lists, as a client sees them.
 */
import { isContainerId, type ContainerId, type PeerId } from '../ids.ts';

/**
 * Where a page ended: the list goes on with what is older than this one, whether or not it is still
 * there.
 */
export interface ListCursor {
  readonly insertedAtMs: number;
  readonly id: ContainerId | PeerId;
}

/** A list's cursor as a client sees it: base64url of `<insertedAtMs>.<id>`. */
export const encodeCursor = ({ insertedAtMs, id }: ListCursor): string =>
  btoa(`${insertedAtMs}.${id}`).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

/** Undefined where the text is no cursor of ours. */
export function decodeCursor(text: string): ListCursor | undefined {
  // A length of 1 modulo 4 is no base64, and atob throws at it.
  if (!/^[A-Za-z0-9_-]{20,100}$/.test(text) || text.length % 4 === 1) return undefined;
  const [, ms, id] = /^(\d{1,15})\.(.+)$/.exec(atob(text.replaceAll('-', '+').replaceAll('_', '/'))) ?? [];
  return ms !== undefined && id !== undefined && isContainerId(id) ? { insertedAtMs: Number(ms), id } : undefined;
}

/** The cursor of a list by key: base64url of the last key shown. */
export const encodeKeyCursor = (key: string): string =>
  btoa(key).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

/** Undefined where the text is no cursor of ours. */
export function decodeKeyCursor(text: string, isKey: (key: string) => boolean): string | undefined {
  if (!/^[A-Za-z0-9_-]{2,100}$/.test(text) || text.length % 4 === 1) return undefined;
  const key = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return isKey(key) ? key : undefined;
}
