/** From an outcome to an HTTP reply: status, headers, body. Pure. */
import { version } from '../../lib/version.ts';
import {
  errorBody,
  isSuccessCode,
  outcomeStatus,
  type ConflictDetail,
  type ConflictReason,
  type ErrorBody,
  type ErrorCode,
  type FieldErrors,
  type OutcomeCode,
  type PlainCode,
} from '../../schemas/errors.ts';
import type { ResourceHead } from '../../schemas/api/etag.ts';
import type { Reply } from './engine/engine.ts';

/** The result of a handler. An error with an empty body is sent as its bare code. */
export interface Result {
  readonly code: OutcomeCode;
  readonly body: string | Uint8Array;
  readonly retryAfterSeconds?: number;
  /** Further headers, or replacements of the usual ones: name, value, name, value... */
  readonly headers?: readonly string[];
  /** The owner's data for headers about the resource. */
  readonly head?: ResourceHead;
}

/** JSON, as an actor's outcome is. */
export interface TextResult extends Result {
  readonly body: string;
}

const error = (body: ErrorBody): TextResult => ({ code: body.error, body: errorBody(body) });

export const failure = (code: PlainCode, message?: string): TextResult =>
  error(message === undefined ? { error: code } : { error: code, message });

export const conflict = (reason: ConflictReason, message: string, detail?: ConflictDetail): TextResult =>
  error({ error: 'conflict', reason, message, ...(detail === undefined ? {} : { detail }) });

export const invalid = (details: FieldErrors): TextResult => error({ error: 'invalid', details });

export const missingScope = (scope: string): TextResult => error({ error: 'forbidden', detail: { scope } });

export const rateLimited = (retryAfterSeconds: number, message?: string): TextResult => ({
  ...failure('rate_limited', message),
  retryAfterSeconds,
});

/** @param of the owner's answer, whose head the result has, too */
const success =
  (code: 'ok' | 'created') =>
  (data: unknown, { head }: Pick<Result, 'head'> = {}): TextResult => ({
    code,
    body: JSON.stringify({ data }),
    ...(head === undefined ? {} : { head }),
  });
export const ok = success('ok');
export const created = success('created');

const defaultRetryAfterSeconds = 1;
const noStore = ['cache-control', 'no-store'];
const json = ['content-type', 'application/json'];
const none: readonly string[] = [];

const bareErrors = new Map<string, string>();
/** `{"error":"not_found"}`, made once for each code. */
function bareError(code: ErrorCode): string {
  const known = bareErrors.get(code);
  if (known !== undefined) return known;
  const body = JSON.stringify({ error: code } satisfies Pick<ErrorBody, 'error'>);
  bareErrors.set(code, body);
  return body;
}

/** The seconds to wait, which an actor says in the body. */
function secondsIn(body: Result['body']): number | undefined {
  // A quote within a JSON text is escaped, so this matches the field, never a part of a message.
  const [, seconds] = typeof body === 'string' ? (/"retry_after_seconds":(\d+)/.exec(body) ?? []) : [];
  return seconds === undefined ? undefined : Number(seconds);
}

function retryAfter({ code, body, retryAfterSeconds }: Result): readonly string[] {
  if (code !== 'rate_limited' && code !== 'unavailable') return none;
  return ['retry-after', String(retryAfterSeconds ?? secondsIn(body) ?? defaultRetryAfterSeconds)];
}

/** The same whatever is wrong with the credentials (RFC 9110 section 15.5.2). */
const challenge = ['www-authenticate', 'Bearer realm="longshore"'];

/** Headers of every answer. */
export const everyAnswer = (requestId: string): readonly string[] => [
  'x-request-id',
  requestId,
  'longshore-version',
  version,
];

/** @param more headers beside those of the result */
export function replyOf(result: Result, requestId: string, more: readonly string[] = none): Reply {
  const status = outcomeStatus[result.code];
  const empty = status === 204 || status === 303 || status === 304;
  const body = result.body === '' && !isSuccessCode(result.code) ? bareError(result.code) : result.body;
  const own = result.headers ?? none;
  const headers = [...everyAnswer(requestId)];
  if (!own.includes('cache-control')) headers.push(...noStore);
  if (!empty && !own.includes('content-type')) headers.push(...json);
  headers.push(...retryAfter(result));
  if (result.code === 'unauthenticated') headers.push(...challenge);
  headers.push(...own, ...more);
  return { status, body, headers };
}
