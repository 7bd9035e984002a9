/** Files that are asked for again and again, and are sent when they have changed. */
import { createHash } from 'node:crypto';
import type { Call } from './call.ts';
import type { Result } from './respond.ts';

/** A strong one: the bytes are the same where it is. RFC 9110 section 8.8.3. */
const etagOf = (content: string | Uint8Array): string =>
  `"${createHash('sha256').update(content).digest('base64url').slice(0, 27)}"`;

/** RFC 9110 section 13.1.2; weak comparison, which is what If-None-Match uses. */
const isKnown = (ifNoneMatch: string | undefined, etag: string): boolean =>
  ifNoneMatch !== undefined &&
  ifNoneMatch.split(',').some((known) => known.trim() === '*' || known.trim().replace(/^W\//, '') === etag);

/** `whole`: headers that go with the content; `always`: with the word that it is unchanged too. */
export function conditional(
  call: Call,
  content: string,
  { whole, always = [] }: { readonly whole: readonly string[]; readonly always?: readonly string[] },
): Result {
  const etag = etagOf(content);
  const headers = ['etag', etag, ...always];
  return isKnown(call.exchange.head.headers.ifNoneMatch, etag)
    ? { code: 'not_modified', body: '', headers }
    : { code: 'ok', body: content, headers: [...whole, ...headers] };
}
