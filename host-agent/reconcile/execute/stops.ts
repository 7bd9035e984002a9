/**
 * Bounds concurrent stops, which take as long as a container's grace. A stop that takes longer
 * hangs and gives up its place, as a slow step does (queue.ts), so that an engine that cannot stop
 * some containers still stops the others.
 */
import { createQueue, type QueueBounds } from '../queue.ts';

export interface Stops {
  /** Does the work when a place is free; once, even if it is requested again meanwhile. */
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
          // The container is down: the time of its stop says nothing about the next one.
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
