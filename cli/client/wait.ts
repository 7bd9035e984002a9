/** Waits for a status of a container, for longer than one request may. */
import { limits } from '../../schemas/limits.ts';
import { dataOf, type Api, type Schemas } from './api.ts';
import { ApiError, ConnectionError } from './errors.ts';

/**
 * Asks until an answer comes, or until the time. A client sends a request again for a few seconds;
 * who waits for a container waits longer for a server that starts again.
 */
export async function persist<T>(endMs: number, ask: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (error) {
      const isOver = attempt >= limits.clientWaitAttempts || performance.now() >= endMs;
      if (isOver || !(error instanceof ConnectionError)) throw error;
    }
  }
}

export type StatusView = Schemas['ContainerStatusView'];
export type WaitedStatus = Schemas['ContainerStatus'] | 'removed';

/**
 * Resolves to the status when the container has it, or to undefined after the time.
 * @throws ApiError: 404 if there is no such container (to `removed` too, once it is gone), 409 if
 * it is being removed
 */
export async function waitFor(
  api: Api,
  id: string,
  status: WaitedStatus,
  withinMs: number,
): Promise<StatusView | undefined> {
  const endMs = performance.now() + withinMs;
  for (;;) {
    const leftS = Math.ceil((endMs - performance.now()) / 1000);
    if (leftS <= 0) return undefined;
    const timeout = Math.min(leftS, limits.clientWaitSeconds);
    try {
      const query = { status, timeout };
      return await persist(endMs, () =>
        dataOf(api.GET('/api/v2/compute/{id}/wait', { params: { path: { id }, query } })),
      );
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 504) throw error;
    }
  }
}
