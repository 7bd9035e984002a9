/** Pulls images: once for all containers that wait for one, a few at a time. */
import type { PullPolicy } from '../../schemas/api/container.ts';
import type { ContainerId, TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { Engine } from '../docker/engine.ts';
import { EngineError } from '../docker/errors.ts';
import type { Metrics } from '../metrics.ts';
import { nextPull, type PullAsk } from './pull-slots.ts';
import type { Permit } from './registries.ts';

/** The container that an image is for. */
export interface PullFor {
  readonly tenant: TenantId;
  readonly id: ContainerId;
}

export interface Pulls {
  /**
   * The id of the image, once it is present. @throws EngineError; RegistryError where the registry
   * is not allowed
   */
  get(reference: string, policy: PullPolicy, forWhom: PullFor): Promise<string>;
  /** The container no longer needs its image; aborts a pull that no container waits for. */
  leave(forWhom: ContainerId): void;
  stop(): void;
}

interface Pull {
  readonly waiting: Set<ContainerId>;
  readonly controller: AbortController;
  readonly image: Promise<string>;
}

interface Place extends PullAsk {
  readonly begin: () => void;
}

const bounds = {
  places: limits.concurrentPulls,
  perTenant: limits.pullsPerTenant,
  perRegistry: limits.pullsPerRegistry,
};

export function createPulls(engine: Engine, permit: Permit, metrics: Pick<Metrics, 'pull'>): Pulls {
  const pulls = new Map<string, Pull>();
  const waiting = new Set<Place>();
  const running = new Set<Place>();
  let order = 0;

  const dispatch = (): void => {
    for (;;) {
      const next = nextPull([...waiting], [...running], bounds);
      if (next === undefined) return;
      waiting.delete(next);
      running.add(next);
      next.begin();
    }
  };

  /** Does the work when a place is free; a pull that is given up before takes none. */
  const inPlace = async <T>(ask: Omit<PullAsk, 'order'>, signal: AbortSignal, work: () => Promise<T>): Promise<T> => {
    const place = await new Promise<Place>((resolve) => {
      const asked: Place = { ...ask, order: (order += 1), begin: () => resolve(asked) };
      waiting.add(asked);
      signal.addEventListener(
        'abort',
        () => {
          if (waiting.delete(asked)) resolve(asked);
        },
        { once: true },
      );
      dispatch();
    });
    try {
      if (signal.aborted) throw new EngineError('image pull', { kind: 'aborted' }, 'given up');
      return await work();
    } finally {
      running.delete(place);
      dispatch();
    }
  };

  const fetchImage = async (reference: string, signal: AbortSignal): Promise<string> => {
    try {
      await permit(registryOf(reference));
      await engine.pull(reference, signal);
      const id = await engine.imageId(reference);
      if (id === undefined) throw notThere(reference, 'is not there after its pull');
      metrics.pull('pulled');
      return id;
    } catch (error) {
      if (!signal.aborted) metrics.pull('failed');
      throw error;
    }
  };

  const join = (reference: string, { tenant, id }: PullFor): Promise<string> => {
    const known = pulls.get(reference);
    if (known !== undefined) {
      known.waiting.add(id);
      return known.image;
    }
    const controller = new AbortController();
    const { signal } = controller;
    const image = inPlace({ tenant, registry: registryOf(reference) }, signal, () =>
      fetchImage(reference, signal),
    ).finally(() => {
      if (pulls.get(reference)?.controller === controller) pulls.delete(reference);
    });
    pulls.set(reference, { waiting: new Set([id]), controller, image });
    return image;
  };

  return {
    get: async (reference, policy, forWhom) => {
      if (policy !== 'always') {
        const present = await engine.imageId(reference);
        if (present !== undefined) {
          metrics.pull('present');
          return present;
        }
        if (policy === 'never') throw notThere(reference, 'is not on this host, and its pull_policy is never');
      }
      return join(reference, forWhom);
    },
    leave: (id) => {
      for (const [reference, { waiting: forWhom, controller }] of pulls) {
        if (!forWhom.delete(id) || forWhom.size > 0) continue;
        pulls.delete(reference);
        controller.abort();
      }
    },
    stop: () => {
      for (const { controller } of pulls.values()) controller.abort();
    },
  };
}

/** A reference always begins with its registry (spec/reference.ts). */
const registryOf = (reference: string): string => reference.slice(0, reference.indexOf('/'));

const notThere = (reference: string, what: string): EngineError =>
  new EngineError('image', { kind: 'refused', status: 404 }, `image ${reference} ${what}: not found`);
