/**
 * A `fetch` with a deadline for each attempt, which sends a request again where that is safe
 * (docs/errors.md): after 429 and 503 nothing was executed; after no answer and after 504 the
 * request may have been, so only what may be repeated is sent again.
 */
import { backoffMs, jitter, sleep } from '../../lib/time/backoff.ts';
import { limits } from '../../schemas/limits.ts';
import { ConnectionError, InterruptedError } from './errors.ts';

/** Attempts of one request. */
export const clientAttempts = 5;
/** One attempt of a request; routes that make keys take up to a minute. */
const clientRequestMs = 75_000;
/** Time beyond the `timeout` of a request that waits. */
const clientWaitMarginMs = 15_000;
/** A longer `Retry-After` is for a person to decide about. */
const clientRetryAfterMs = 30_000;

export type Send = (request: Request) => Promise<Response>;

export interface RepeatOptions {
  /** Name of the server in errors. */
  readonly server: string;
  /** The `fetch` of Node by default. */
  readonly fetch?: (request: Request, options: { readonly signal: AbortSignal }) => Promise<Response>;
  /** Resolves after the time, or when the signal aborts. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Called before a pause, for people who wait. */
  readonly onPause?: (why: string, ms: number) => void;
}

const bounds = { minMs: limits.clientRetryMinMs, maxMs: limits.clientRetryMaxMs };

/** A start and a stop may be repeated, and a create with its key. */
const isRepeatable = (request: Request): boolean =>
  ['GET', 'HEAD', 'PUT', 'DELETE'].includes(request.method) ||
  request.headers.has('idempotency-key') ||
  /\/(start|stop)$/.test(new URL(request.url).pathname);

const isStream = (request: Request): boolean => new URL(request.url).searchParams.get('follow') === 'true';

/** The answer to a wait comes when it is over. */
function deadlineOf(request: Request): number {
  const seconds = Number(new URL(request.url).searchParams.get('timeout') ?? 0);
  return seconds > 0 ? seconds * 1000 + clientWaitMarginMs : clientRequestMs;
}

/** Pause before the request is sent again; `undefined` if the answer is final. */
function pauseAfter(request: Request, answer: Response, attempt: number): number | undefined {
  const { status } = answer;
  const isRefused = status === 429 || status === 503;
  // A wait that has ended is an answer; only a write has an unknown outcome.
  const isUnknown = status === 504 && request.method !== 'GET' && isRepeatable(request);
  if (!isRefused && !isUnknown) return undefined;
  const asked = 1000 * Number(answer.headers.get('retry-after') ?? 0) || 0;
  if (asked > clientRetryAfterMs) return undefined;
  return Math.max(asked, jitter(backoffMs(attempt, bounds)));
}

const nodeFetch: NonNullable<RepeatOptions['fetch']> = (request, options) => fetch(request, options);

export function repeating({ server, fetch = nodeFetch, pause = sleep, onPause }: RepeatOptions): Send {
  const once = async (request: Request): Promise<Response> => {
    const attempt = new AbortController();
    const leave = (): void => attempt.abort(request.signal.reason);
    if (request.signal.aborted) leave();
    request.signal.addEventListener('abort', leave, { once: true });
    const deadlineMs = deadlineOf(request);
    const timer = setTimeout(() => attempt.abort(new Error(`no answer within ${deadlineMs / 1000} s`)), deadlineMs);
    // The process may end while the body of an answer is not read.
    timer.unref();
    try {
      const answer = await fetch(request.clone(), { signal: attempt.signal });
      // The deadline of other answers goes on until their body is read.
      if (isStream(request)) clearTimeout(timer);
      return answer;
    } catch (error) {
      clearTimeout(timer);
      if (request.signal.aborted) throw new InterruptedError();
      throw new ConnectionError(server, attempt.signal.aborted ? attempt.signal.reason : error);
    }
  };
  const wait = async (request: Request, why: string, ms: number): Promise<void> => {
    onPause?.(why, ms);
    await pause(ms, request.signal);
    if (request.signal.aborted) throw new InterruptedError();
  };
  return async (request) => {
    for (let attempt = 0; ; attempt++) {
      const isLast = attempt + 1 >= clientAttempts;
      try {
        const answer = await once(request);
        const ms = isLast ? undefined : pauseAfter(request, answer, attempt);
        if (ms === undefined) return answer;
        await answer.body?.cancel();
        await wait(request, `the server answered ${answer.status}`, ms);
      } catch (error) {
        // `fetch` asks no server at the port of another protocol, such as 6000.
        const isFinal = !(error instanceof ConnectionError) || error.message.endsWith(': bad port');
        if (isLast || isFinal || !isRepeatable(request)) throw error;
        await wait(request, error.message, jitter(backoffMs(attempt, bounds)));
      }
    }
  };
}
