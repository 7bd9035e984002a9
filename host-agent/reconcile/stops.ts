/**
 * Places for stops, which take as long as a container's grace. One that takes longer hangs: it
 * gives up its place as a slow step does (queue.ts), so that an engine which cannot stop some
 * containers still stops the others.
 */
import { createQueue, type QueueBounds } from './queue.ts';

export interface Stops {
  /** Does the work when it has a place; once, where it is asked for again meanwhile. */
  run(dockerId: string, work: () => Promise<void>): Promise<void>;
}

interface Pending {
  readonly begin: () => Promise<void>;
  readonly done: Promise<void>;
}

export function createStops(bounds: QueueBounds): Stops {
  const pending = new Map<string, Pending>();
  const queue = createQueue<string>(bounds, async (dockerId) => pending.get(dockerId)?.begin());

  const admit = (dockerId: string, work: () => Promise<void>): Promise<void> => {
    let begin = (): Promise<void> => Promise.resolve();
    const done = new Promise<void>((resolve) => {
      begin = async () => {
        const ended = work()
          // It does not run any more: how long its stop took is of no use.
          .then(() => queue.forget(dockerId))
          .finally(() => pending.delete(dockerId));
        resolve(ended);
        await ended.catch(() => undefined);
      };
    });
    pending.set(dockerId, { begin, done });
    queue.enqueue(dockerId);
    return done;
  };

  return { run: (dockerId, work) => pending.get(dockerId)?.done ?? admit(dockerId, work) };
}
