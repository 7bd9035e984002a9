/** Waits for a status of a container, for longer than one request may. */
import { limits } from '../../schemas/limits.ts';
import { dataOf, type Api, type Schemas } from './api.ts';
import { ApiError } from './errors.ts';

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
      return await dataOf(
        api.GET('/api/v2/compute/{id}/wait', { params: { path: { id }, query: { status, timeout } } }),
      );
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 504) throw error;
    }
  }
}
