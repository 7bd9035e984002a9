/** Images, fetched once for all who wait for them, a few at a time. */
import type { PullPolicy } from '../schemas/container.ts';
import type { ContainerId } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';
import type { Engine } from './docker/engine.ts';
import { EngineError } from './docker/errors.ts';
import type { Metrics } from './metrics.ts';
import { createSemaphore } from './semaphore.ts';

export interface Pulls {
  /** The id of the image, once it is present. @throws EngineError */
  get(reference: string, policy: PullPolicy, forWhom: ContainerId): Promise<string>;
  /** It is not wanted any more; a pull that nobody waits for is broken off. */
  leave(forWhom: ContainerId): void;
  stop(): void;
}

interface Pull {
  readonly waiting: Set<ContainerId>;
  readonly controller: AbortController;
  readonly image: Promise<string>;
}

export function createPulls(engine: Engine, metrics: Pick<Metrics, 'pull'>): Pulls {
  const pulls = new Map<string, Pull>();
  const places = createSemaphore(limits.concurrentPulls);

  const fetchImage = (reference: string, signal: AbortSignal): Promise<string> =>
    places.run(async () => {
      try {
        if (signal.aborted) throw new EngineError('image pull', { kind: 'aborted' }, 'given up');
        await engine.pull(reference, signal);
        const id = await engine.imageId(reference);
        if (id === undefined) throw notThere(reference, 'is not there after its pull');
        metrics.pull('pulled');
        return id;
      } catch (error) {
        if (!signal.aborted) metrics.pull('failed');
        throw error;
      }
    });

  const join = (reference: string, id: ContainerId): Promise<string> => {
    const running = pulls.get(reference);
    if (running !== undefined) {
      running.waiting.add(id);
      return running.image;
    }
    const controller = new AbortController();
    const image = fetchImage(reference, controller.signal).finally(() => {
      if (pulls.get(reference)?.controller === controller) pulls.delete(reference);
    });
    pulls.set(reference, { waiting: new Set([id]), controller, image });
    return image;
  };

  return {
    get: async (reference, policy, id) => {
      if (policy !== 'always') {
        const present = await engine.imageId(reference);
        if (present !== undefined) {
          metrics.pull('present');
          return present;
        }
        if (policy === 'never') throw notThere(reference, 'is not on this host, and its pull_policy is never');
      }
      return join(reference, id);
    },
    leave: (id) => {
      for (const [reference, { waiting, controller }] of pulls) {
        if (!waiting.delete(id) || waiting.size > 0) continue;
        pulls.delete(reference);
        controller.abort();
      }
    },
    stop: () => {
      for (const { controller } of pulls.values()) controller.abort();
    },
  };
}

const notThere = (reference: string, what: string): EngineError =>
  new EngineError('image', { kind: 'refused', status: 404 }, `image ${reference} ${what}: not found`);
