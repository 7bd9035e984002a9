/** Waits for the end of a container: until it is at rest, or is gone. */
import { ApiError, InterruptedError } from '../client/errors.ts';
import { waitFor, type StatusView } from '../client/wait.ts';
import type { Context } from '../context.ts';
import { Refused } from '../terminal/errors.ts';
import { statusOf, telling } from './progress.ts';

interface Named {
  readonly id: string;
  readonly name: string;
}

/** How often it looks whether the container ended in another status. */
const cliRestLookMs = 5000;

/**
 * Until it has stopped, or has failed.
 * @throws Refused after the time; InterruptedError
 */
export async function untilAtRest(context: Context, { id, name }: Named, seconds: number): Promise<StatusView> {
  const endMs = performance.now() + seconds * 1000;
  return telling(context, `${name} is being stopped: "longshore wait ${name} stopped"`, async () => {
    for (;;) {
      const view = await statusOf(context, id, endMs);
      if (view.status === 'stopped' || view.status === 'failed') return view;
      const leftMs = endMs - performance.now();
      if (leftMs <= 0)
        throw new Refused(`${name} is still ${view.status} after ${seconds} s: "longshore wait ${name} stopped"`);
      await waitFor(context.api, id, 'stopped', Math.min(leftMs, cliRestLookMs));
    }
  });
}

/**
 * Until it is gone.
 * @throws Refused after the time; InterruptedError
 */
export async function untilGone(context: Context, { id, name }: Named, seconds: number): Promise<void> {
  const { api, terminal } = context;
  const ask = async (): Promise<boolean> => {
    try {
      return (await waitFor(api, id, 'removed', seconds * 1000)) !== undefined;
    } catch (error) {
      if (terminal.signal.aborted) throw new InterruptedError();
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      return true;
    }
  };
  const isGone = await telling(context, `${name} is being removed: "longshore wait ${id} removed"`, ask);
  if (!isGone) throw new Refused(`${name} is not gone after ${seconds} s: "longshore wait ${id} removed"`);
}
