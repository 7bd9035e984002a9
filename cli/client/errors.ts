/** Errors of a request, one class for each kind. */
import { limits } from '../../schemas/limits.ts';
import { textIn, valuesIn, type Values } from '../../lib/values.ts';

/** An answer of the server that is no success. The message is for people. */
export class ApiError extends Error {
  readonly status: number;
  /** The code of docs/errors.md; `unknown` if the answer is not one of the API's. */
  readonly code: string;
  readonly requestId: string | undefined;
  /** Seconds after which the same request may be sent again, if the answer says so. */
  readonly retryAfterS: number | undefined;
  /** Faults by field (`invalid`), empty for other errors. */
  readonly details: Readonly<Record<string, readonly string[]>>;
  /** Reason of a `conflict`. */
  readonly reason: string | undefined;
  /** Details of `over_quota`, `forbidden` and `conflict`. */
  readonly detail: Values;

  constructor(answer: Pick<Response, 'status' | 'headers'>, body: unknown) {
    const { error, message, reason, detail, details } = valuesIn(body);
    const code = textIn(error) ?? 'unknown';
    const faults = Object.entries(valuesIn(details)).map(([field, texts]) => [field, textsIn(texts)] as const);
    super(textIn(message) ?? wordsOf(code, answer.status, body, faults));
    this.name = 'ApiError';
    this.status = answer.status;
    this.code = code;
    this.requestId = answer.headers.get('x-request-id') ?? undefined;
    const retryAfter = Number(answer.headers.get('retry-after') ?? Number.NaN);
    this.retryAfterS = Number.isFinite(retryAfter) ? retryAfter : undefined;
    this.details = Object.fromEntries(faults);
    this.reason = textIn(reason);
    this.detail = valuesIn(detail);
  }
}

const textsIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((text): text is string => typeof text === 'string') : [];

type Faults = readonly (readonly [field: string, texts: readonly string[]])[];

function wordsOf(code: string, status: number, body: unknown, faults: Faults): string {
  const [first] = faults;
  if (first !== undefined) return `${first[0]} ${first[1].join(', ')}`;
  if (code !== 'unknown') return code.replaceAll('_', ' ');
  const text = typeof body === 'string' ? `: ${body.slice(0, limits.clientErrorChars)}` : '';
  return `the server answered ${status}, and not as Longshore does${text}`;
}

/** No answer came: the server can't be reached, the connection broke, or a deadline has passed. */
export class ConnectionError extends Error {
  constructor(server: string, cause: unknown) {
    super(`${server} can't be reached: ${reasonIn(cause)}`, { cause });
    this.name = 'ConnectionError';
  }
}

/** `fetch` names the reason of the system only in the cause of the cause. */
function reasonIn(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof AggregateError && error.errors.length > 0) return reasonIn(error.errors[0]);
  return error.cause === undefined ? error.message : reasonIn(error.cause);
}

/** The signal of the caller ended the work. */
export class InterruptedError extends Error {
  constructor() {
    super('interrupted');
    this.name = 'InterruptedError';
  }
}

/** True if the same request may succeed later. */
export const isPassing = (error: unknown): boolean =>
  error instanceof ConnectionError || (error instanceof ApiError && [429, 500, 502, 503, 504].includes(error.status));
