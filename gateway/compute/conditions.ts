/** Headers by which a request says when it is to be carried out. */
import type { Call } from '../call.ts';
import { invalid, type Result } from '../http/respond.ts';

/** The ETags of `If-Match`; undefined: any will do (RFC 9110 section 13.1.1). */
export function tagsIn(ifMatch: string | undefined): string[] | undefined {
  const tags = ifMatch?.split(',').map((tag) => tag.trim());
  return tags === undefined || tags.includes('*') ? undefined : tags;
}

/** Visible ASCII. */
const idempotencyKeyPattern = /^[\x21-\x7e]{1,255}$/;

/** The key of `Idempotency-Key`, undefined without one, or the refusal of a malformed one. */
export function idempotencyKeyIn({ exchange }: Call): string | undefined | Result {
  const { idempotencyKey: key } = exchange.head.headers;
  return key === undefined || idempotencyKeyPattern.test(key)
    ? key
    : invalid({ 'Idempotency-Key': ['must be 1 to 255 visible ASCII characters'] });
}
