/** The replies to requests that never reach a handler. */
import { limits } from '../../schemas/limits.ts';
import type { BodyRefusal } from './engine/body.ts';
import { failure, rateLimited, type Result } from './respond.ts';
import type { NoPermit } from '../../lib/permits.ts';

export const notFound = failure('not_found');
export const forbidden = failure('forbidden');
export const nothingToMatch = failure(
  'precondition_failed',
  'nothing is there before this request that `If-Match` could name; leave the header out',
);
export const tooLarge = failure('too_large');
export const tooManyValues = failure(
  'too_large',
  `the body has more than ${limits.bodyValues} keys and items; send fewer`,
);
const tooLate = failure(
  'bad_request',
  `the body did not arrive within ${limits.bodyMs / 1000} seconds; send it faster, or in smaller requests`,
);
export const notJson = failure('bad_request', 'the body is not JSON in UTF-8; fix it and send it again');
export const wrongType = failure('unsupported_media_type');
export const tooLongUrl = failure('bad_request', `the URL is longer than ${limits.urlBytes} bytes; shorten it`);
export const malformed = failure(
  'bad_request',
  'the headers are wrong: one Host, a name or an address, at most one Authorization and Idempotency-Key, and one Content-Length in digits or Transfer-Encoding: chunked',
);
const tooManyPieces = failure(
  'too_large',
  `the body came in more than ${limits.bodyPieces} pieces; send it in larger chunks, or whole with a Content-Length`,
);
export const permitRefusals: Readonly<Record<NoPermit, Result>> = {
  full: failure('unavailable', 'this gateway has too many requests in flight; try again'),
  client: rateLimited(1),
  tenant: rateLimited(1),
};

/**
 * The same for requests that last longer and have permits of their own.
 * @param what the name of what there are too many of
 */
export const noPermitFor = (what: string): Readonly<Record<NoPermit, Result>> => ({
  full: {
    ...failure('unavailable', `this gateway has too many ${what}; try again`),
    retryAfterSeconds: limits.streamRetryAfterSeconds,
  },
  client: rateLimited(limits.streamRetryAfterSeconds, `your address has too many ${what}; close one`),
  tenant: rateLimited(limits.streamRetryAfterSeconds, `your tenant has too many ${what}; close one`),
});
const unfinishedBodies = (whose: string, bytes: number): string =>
  `unfinished request bodies ${whose} fill their ${bytes / 1024 ** 2} MiB; send fewer large bodies at a time`;
export const bodyRefusals: Readonly<Record<BodyRefusal, Result>> = {
  too_large: tooLarge,
  too_many_pieces: tooManyPieces,
  too_late: tooLate,
  full: failure('unavailable', unfinishedBodies('of all clients', limits.bodiesHeldBytes)),
  client: rateLimited(1, unfinishedBodies('from this address', limits.bodiesHeldPerClientBytes)),
  tenant: rateLimited(1, unfinishedBodies('of this tenant', limits.bodiesHeldPerTenantBytes)),
};
export const wrongMethod = (allow: string): Result => ({ ...failure('method_not_allowed'), headers: ['allow', allow] });
export const options = (allow: string): Result => ({ code: 'no_content', body: '', headers: ['allow', allow] });
