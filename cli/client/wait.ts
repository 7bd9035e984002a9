/** Waits for a status of a container, for longer than one request may. */
import { dataOf, type Api, type Schemas } from './api.ts';
import { ApiError, ConnectionError } from './errors.ts';
import type { paths } from './openapi.d.ts';

/** Requests of a wait in a row, each with all of its attempts, that the server did not answer. */
export const clientWaitAttempts = 10;
/** The longest question for a status; a longer wait asks again. */
export const clientWaitSeconds = 60;

/**
 * Asks until an answer comes, or until the time. One request is repeated for a few seconds only; a
 * wait for a container outlives a restart of the server.
 */
export async function persist<T>(endMs: number, ask: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (error) {
      const isOver = attempt >= clientWaitAttempts || performance.now() >= endMs;
      if (isOver || !(error instanceof ConnectionError)) throw error;
    }
  }
}

export type StatusView = Schemas['ContainerStatusView'];
export type WaitedStatus = Schemas['ContainerStatus'] | 'removed';

export type Settled = Schemas['WaitedStatus'];
type Decided = Settled & Required<Pick<Settled, 'outcome'>>;
type WaitQuery = NonNullable<paths['/api/v2/compute/{id}/wait']['get']['parameters']['query']>;

/**
 * Resolves to the status when the container has one of these, or to undefined after the time.
 * @throws ApiError: 404 if there is no such container (to `removed` too, once it is gone), 409 if
 * none of them can come any more
 */
export const waitFor = (
  api: Api,
  id: string,
  status: readonly WaitedStatus[],
  withinMs: number,
): Promise<StatusView | undefined> => waited(api, id, { status: [...status] }, withinMs);

/** Part of a declaration to wait for. */
export interface Declared {
  readonly generation: number;
  /** True if it runs once: then its end and its exit code count. */
  readonly isJob: boolean;
  /** Time that it must stay up; 0 if a health check decides. */
  readonly stableSeconds: number;
}

/**
 * Resolves to the status once the outcome of the declaration is known, or to `undefined` after the
 * time.
 * @throws ApiError: 404 if there is no such container
 */
export async function settled(
  api: Api,
  id: string,
  { generation, isJob, stableSeconds }: Declared,
  withinMs: number,
  signal?: AbortSignal,
): Promise<Decided | undefined> {
  const query = { until: 'settled', generation, stable_seconds: stableSeconds, job: isJob } as const;
  // With `until=settled`, the answer has an outcome.
  return waited(api, id, query, withinMs, signal) as Promise<Decided | undefined>;
}

async function waited(
  api: Api,
  id: string,
  asked: WaitQuery,
  withinMs: number,
  signal?: AbortSignal,
): Promise<Settled | undefined> {
  const endMs = performance.now() + withinMs;
  for (;;) {
    const leftS = Math.ceil((endMs - performance.now()) / 1000);
    if (leftS <= 0) return undefined;
    const query = { ...asked, timeout: Math.min(leftS, clientWaitSeconds) };
    const more = signal === undefined ? {} : { signal };
    try {
      return await persist(endMs, () =>
        dataOf(api.GET('/api/v2/compute/{id}/wait', { params: { path: { id }, query }, ...more })),
      );
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 504) throw error;
    }
  }
}
