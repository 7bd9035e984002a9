/** Waits for a container: for a given status, for its rest, or for its removal. */
import { ApiError, InterruptedError } from '../client/errors.ts';
import { waitFor, type StatusView, type WaitedStatus } from '../client/wait.ts';
import type { Context } from '../context.ts';
import { Refused } from '../terminal/errors.ts';
import { cannotCome } from './done.ts';
import { endText, statusOf, telling } from './progress.ts';

interface Named {
  readonly id: string;
  readonly name: string;
}

/** Longest wait before the next check that the status can still come. */
const cliStatusLookMs = 5000;

/**
 * Waits until the container has one of these statuses; `undefined` after the time.
 * @throws Refused as soon as it can reach none of them any more; InterruptedError
 */
export async function untilStatus(
  context: Context,
  container: Named,
  wanted: readonly WaitedStatus[],
  seconds: number,
): Promise<StatusView | undefined> {
  const { id } = container;
  const endMs = performance.now() + seconds * 1000;
  const isLost = (view: StatusView): boolean => wanted.every((status) => cannotCome(view, status));
  for (;;) {
    const view = await statusOf(context, id, endMs);
    if (wanted.some((status) => status === view.status)) return view;
    if (isLost(view))
      throw new Refused(
        `${await endText(context, container, view)}\nIt can't become ${wanted.join(' or ')} by itself.`,
      );
    const leftMs = endMs - performance.now();
    if (leftMs <= 0) return undefined;
    try {
      const found = await waitFor(context.api, id, wanted, Math.min(leftMs, cliStatusLookMs));
      if (found !== undefined) return found;
    } catch (error) {
      const isRefused = error instanceof ApiError && error.code === 'conflict';
      // The server may refuse first; the next look gives the reason.
      if (!isRefused || !isLost(await statusOf(context, id))) throw error;
    }
  }
}

/**
 * Waits until it has stopped or failed.
 * @throws Refused after the time; InterruptedError
 */
export async function untilAtRest(context: Context, container: Named, seconds: number): Promise<StatusView> {
  const { name } = container;
  const view = await telling(context, `${name} is being stopped: "longshore wait ${name} stopped"`, () =>
    untilStatus(context, container, ['stopped', 'failed'], seconds),
  );
  if (view === undefined)
    throw new Refused(`${name} has not stopped after ${seconds} s: "longshore wait ${name} stopped"`);
  return view;
}

/**
 * Waits until it is gone.
 * @throws Refused after the time; InterruptedError
 */
export async function untilGone(context: Context, { id, name }: Named, seconds: number): Promise<void> {
  const { api, terminal } = context;
  const ask = async (): Promise<boolean> => {
    try {
      return (await waitFor(api, id, ['removed'], seconds * 1000)) !== undefined;
    } catch (error) {
      if (terminal.signal.aborted) throw new InterruptedError();
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      return true;
    }
  };
  const isGone = await telling(context, `${name} is being removed: "longshore wait ${id} removed"`, ask);
  if (!isGone) throw new Refused(`${name} is not gone after ${seconds} s: "longshore wait ${id} removed"`);
}
