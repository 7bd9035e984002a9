/**
 * ETags in requests: conditions of writes, and of files and declarations that are sent only if they
 * have changed.
 */
import { createHash } from 'node:crypto';
import type { Conditions } from '../../schemas/api/etag.ts';
import type { Exchange } from './engine/engine.ts';
import type { RequestHeaders } from './engine/guard.ts';
import type { Result } from './respond.ts';

/** A strong ETag: equal ETags mean equal bytes (RFC 9110 section 8.8.3). */
const etagOf = (content: string | Uint8Array): string =>
  `"${createHash('sha256').update(content).digest('base64url').slice(0, 27)}"`;

/** A header without any ETag names none that a resource could have. */
const tagsIn = (header: string): string[] => header.match(/\*|(?:W\/)?"[^"]*"/g) ?? [];

/** The preconditions of a request; `undefined` if it has none. */
export function conditionsIn({ ifMatch, ifNoneMatch }: RequestHeaders): Conditions | undefined {
  if (ifMatch === undefined && ifNoneMatch === undefined) return undefined;
  return {
    ...(ifMatch === undefined ? {} : { match: tagsIn(ifMatch) }),
    ...(ifNoneMatch === undefined ? {} : { noneMatch: tagsIn(ifNoneMatch) }),
  };
}

/** RFC 9110 section 13.1.2; weak comparison, which is what If-None-Match uses. */
export const isKnown = (ifNoneMatch: string | undefined, etag: string): boolean =>
  ifNoneMatch !== undefined &&
  ifNoneMatch.split(',').some((known) => known.trim() === '*' || known.trim().replace(/^W\//, '') === etag);

/** `whole`: headers of an answer with the content; `always`: headers of a 304, too. */
export function conditional(
  { exchange }: { readonly exchange: Pick<Exchange, 'head'> },
  content: string,
  { whole, always = [] }: { readonly whole: readonly string[]; readonly always?: readonly string[] },
): Result {
  const etag = etagOf(content);
  const headers = ['etag', etag, ...always];
  return isKnown(exchange.head.headers.ifNoneMatch, etag)
    ? { code: 'not_modified', body: '', headers }
    : { code: 'ok', body: content, headers: [...whole, ...headers] };
}
