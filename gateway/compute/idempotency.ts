/** The key of `Idempotency-Key`. */
import type { Call } from '../call.ts';
import { invalid, type Result } from '../http/respond.ts';

/** Visible ASCII. */
const keyPattern = /^[\x21-\x7e]{1,255}$/;

/** The key of a request, undefined without one, or the refusal of a malformed one. */
export function idempotencyKeyIn({ exchange }: Call): string | undefined | Result {
  const { idempotencyKey: key } = exchange.head.headers;
  return key === undefined || keyPattern.test(key)
    ? key
    : invalid({ 'Idempotency-Key': ['must be 1 to 255 visible ASCII characters'] });
}
