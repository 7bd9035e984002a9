/**
 * Every outcome of an HTTP request, and its status. Actors and gateway name outcomes by code; only
 * this table has the numbers. docs/errors.md is generated from it.
 */

export const successStatus = {
  switching_protocols: 101,
  ok: 200,
  created: 201,
  accepted: 202,
  no_content: 204,
  see_other: 303,
  not_modified: 304,
} as const;

export const errorStatus = {
  bad_request: 400,
  unauthenticated: 401,
  forbidden: 403,
  over_quota: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  precondition_failed: 412,
  too_large: 413,
  unsupported_media_type: 415,
  invalid: 422,
  upgrade_required: 426,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
  timeout: 504,
} as const;

export type SuccessCode = keyof typeof successStatus;
export type ErrorCode = keyof typeof errorStatus;
export type OutcomeCode = SuccessCode | ErrorCode;

export const outcomeStatus: Readonly<Record<OutcomeCode, number>> = { ...successStatus, ...errorStatus };

export const isSuccessCode = (code: string): code is SuccessCode => Object.hasOwn(successStatus, code);
export const isOutcomeCode = (code: string): code is OutcomeCode => Object.hasOwn(outcomeStatus, code);

/** The codes whose body is the bare code, or the code and a message. */
export type PlainCode = Exclude<ErrorCode, 'over_quota' | 'invalid' | 'conflict'>;

/** Faults of a request, by field; `_` is the body as a whole. */
export type FieldErrors = Record<string, string[]>;

/**
 * The reason why a request conflicts with what is there, for programs; docs/errors.md says what to
 * do. The next release may add words.
 */
export const conflictReasons = [
  'removing',
  'not_running',
  'in_use',
  'exists',
  'no_host',
  'managed',
  'overlaps',
  'elsewhere',
  'key_used',
  'too_many',
  'changed',
  'disabled',
  'refused',
  'unsupported',
  'damaged',
] as const;
export type ConflictReason = (typeof conflictReasons)[number];

/** Details with which a program can go on; the next release may add fields. */
export interface ConflictDetail {
  /** With `too_many`: the largest allowed number. */
  readonly max?: number;
  /** With `in_use`: ids of the first containers that use it. */
  readonly containers?: readonly string[];
}

/**
 * The body of an error: `{"error": code}`, with `reason` (conflict), `detail` (over_quota, some of
 * conflict, and forbidden where a scope is missing), `details` (invalid) or a plain `message`.
 */
export type ErrorBody =
  | { error: 'conflict'; reason: ConflictReason; message: string; detail?: ConflictDetail }
  | { error: 'over_quota'; detail: { dimension: QuotaDimension; requested: number; max: number } }
  | { error: 'invalid'; details: FieldErrors }
  | { error: 'forbidden'; detail: { scope: string } }
  /** Set by an actor; the gateway also sends it as `Retry-After`. */
  | { error: 'rate_limited'; message: string; retry_after_seconds: number }
  | { error: PlainCode; message?: string };

/** The text of every error that Longshore answers over HTTP. */
export const errorBody = (error: ErrorBody): string => JSON.stringify(error);

/** The order in which exceeded caps are reported. */
export const quotaDimensions = ['containers', 'cpu_millis', 'mem_bytes', 'vpn_peers', 'ports', 'disk_bytes'] as const;
export type QuotaDimension = (typeof quotaDimensions)[number];
