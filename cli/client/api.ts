/**
 * The typed client of the API. Paths, parameters, bodies and answers have the types of the OpenAPI
 * document (openapi.d.ts); `dataOf` and its like turn answers into values or into errors.
 */
import { randomUUID } from 'node:crypto';
import createClient, { type Client } from 'openapi-fetch';
import { version } from '../../lib/version.ts';
import { ApiError, ConnectionError, InterruptedError } from './errors.ts';
import type { components, paths } from './openapi.d.ts';
import { repeating, type RepeatOptions } from './repeat.ts';

export type Api = Client<paths>;
export type Schemas = components['schemas'];

export interface ApiOptions extends RepeatOptions {
  /** A JWT; without one, only public routes answer. */
  readonly token?: string;
  /** Ends every request of this client. */
  readonly signal?: AbortSignal;
}

/**
 * Routes whose requests may be repeated with a key. Starts and stops may be repeated without one.
 */
const honoursKeys = /^\/api\/(v2\/(compute|containers|keys)|forage)\b(?!.*\/(start|stop)$)/;

/** `server` is the base of the URLs, such as `https://longshore.example.com`. */
export function createApi(options: ApiOptions): Api {
  const { server, token, signal } = options;
  const api = createClient<paths>({
    baseUrl: server,
    fetch: repeating(options),
    ...(signal === undefined ? {} : { signal }),
    headers: {
      'user-agent': `longshore/${version}`,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    // Each of several values is a parameter of its own.
    querySerializer: { array: { style: 'form', explode: true } },
  });
  api.use({
    onRequest({ request, schemaPath }) {
      if (request.method !== 'POST' || !honoursKeys.test(schemaPath)) return;
      if (!request.headers.has('idempotency-key')) request.headers.set('idempotency-key', randomUUID());
    },
  });
  return api;
}

/** Result of openapi-fetch. */
export interface Answer<T> {
  readonly data?: T | undefined;
  readonly error?: unknown;
  readonly response: Response;
}

/**
 * The answer, if it is a success.
 * @throws ApiError if it is not, ConnectionError if none came, InterruptedError
 */
export async function answerOf<T>(
  asked: Promise<Answer<T>>,
): Promise<{ readonly body: T; readonly response: Response }> {
  const { data, error, response } = await asked.catch((cause: unknown) => {
    if (cause instanceof ConnectionError || cause instanceof InterruptedError) throw cause;
    // The connection broke within the body, or it is not JSON.
    throw new ConnectionError('the server', cause);
  });
  if (!response.ok) throw new ApiError(response, error);
  return { body: data as T, response };
}

/** The body of a success that is not wrapped in `data`, such as a file. Errors as `answerOf`. */
export const bodyOf = async <T>(asked: Promise<Answer<T>>): Promise<T> => (await answerOf(asked)).body;

/** The `data` of a success, of a route that may also answer with a stream. Errors as `answerOf`. */
export async function dataOf<T>(asked: Promise<Answer<{ readonly data: T } | string>>): Promise<T> {
  const body = await bodyOf(asked);
  if (typeof body === 'string') throw new ConnectionError('the server', new Error('its answer is no JSON'));
  return body.data;
}

/** Answer to a write of a container. */
export interface Written<T> {
  readonly data: T;
  /** Generation to wait for. */
  readonly generation: number;
}

/** Errors as `answerOf`. */
export async function writtenOf<T>(asked: Promise<Answer<{ readonly data: T }>>): Promise<Written<T>> {
  const { body, response } = await answerOf(asked);
  const generation = response.headers.get('longshore-generation');
  if (generation === null) throw new ConnectionError('the server', new Error('its answer names no generation'));
  return { data: body.data, generation: Number(generation) };
}

/** `undefined` if there is no such thing (404). Throws other errors as they come. */
export async function orNone<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

/** Waits for an answer without a body. Errors as `answerOf`. */
export const doneOf = async (asked: Promise<Answer<unknown>>): Promise<void> => void (await answerOf(asked));
