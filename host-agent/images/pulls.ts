/** Pulls images: once for all containers that wait for one, a few at a time. */
import type { PullPolicy, PullProgress } from '../../schemas/api/container.ts';
import type { ContainerId, TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { Log } from '../../lib/log.ts';
import { createNotify } from '../../lib/notify.ts';
import type { Engine } from '../docker/engine.ts';
import { EngineError } from '../docker/errors.ts';
import type { PullLines } from '../docker/pull-progress.ts';
import type { Metrics } from '../metrics.ts';
import { createPullPlaces, type PlaceBounds } from './pull-places.ts';
import type { PullState } from './pull-slots.ts';
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
  /** How far the pulls are that containers wait for. */
  progress(): ReadonlyMap<ContainerId, PullProgress>;
  /** Resolves when a pull gets further, or the signal aborts. */
  moved(signal: AbortSignal): Promise<void>;
  counts(): Readonly<Record<PullState, number>>;
  stop(): void;
}

interface Pull {
  readonly reference: string;
  readonly waiting: Map<ContainerId, TenantId>;
  readonly controller: AbortController;
  /** What the engine said of it; undefined before it began. */
  lines?: PullLines;
}

export interface PullsParts {
  readonly engine: Pick<Engine, 'pull' | 'imageId'>;
  readonly permit: Permit;
  readonly metrics: Pick<Metrics, 'pull'>;
  readonly log: Log;
  readonly bounds?: PlaceBounds;
}

const usualBounds: PlaceBounds = {
  places: limits.concurrentPulls,
  placesAside: limits.concurrentSlowPulls,
  perTenant: limits.pullsPerTenant,
  perRegistry: limits.pullsPerRegistry,
  patienceMs: limits.pullPatienceMs,
};

export function createPulls({ engine, permit, metrics, log, bounds = usualBounds }: PullsParts): Pulls {
  const pulls = new Map<string, { readonly pull: Pull; readonly image: Promise<string> }>();
  const places = createPullPlaces(bounds);
  const moves = createNotify();
  let isQueueLogged = false;

  const onLine = (pull: Pull, lines: PullLines): void => {
    pull.lines = lines;
    moves.notify();
    if (isQueueLogged || !lines.isQueued()) return;
    isQueueLogged = true;
    log.warn('pull_queued_by_engine', { reference: pull.reference });
  };

  const fetchImage = async (pull: Pull): Promise<string> => {
    const { reference, controller } = pull;
    const { signal } = controller;
    try {
      await permit(registryOf(reference));
      await engine.pull(reference, signal, (lines) => onLine(pull, lines));
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
      known.pull.waiting.set(id, tenant);
      places.reconsider();
      return known.image;
    }
    const pull: Pull = { reference, waiting: new Map([[id, tenant]]), controller: new AbortController() };
    const { signal } = pull.controller;
    const ask = { tenants: () => new Set(pull.waiting.values()), registry: registryOf(reference), signal };
    const image = places
      .run(ask, () => fetchImage(pull))
      .finally(() => {
        if (pulls.get(reference)?.pull === pull) pulls.delete(reference);
      });
    pulls.set(reference, { pull, image });
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
      for (const [reference, { pull }] of pulls) {
        if (!pull.waiting.delete(id) || pull.waiting.size > 0) continue;
        pulls.delete(reference);
        pull.controller.abort();
      }
      places.reconsider();
    },
    progress: () => {
      const all = new Map<ContainerId, PullProgress>();
      for (const { pull } of pulls.values()) {
        const progress = pull.lines?.progress();
        if (progress !== undefined) for (const id of pull.waiting.keys()) all.set(id, progress);
      }
      return all;
    },
    moved: (signal) => moves.wait(undefined, signal),
    counts: () => ({
      ...places.counts(),
      queued: [...pulls.values()].filter(({ pull }) => pull.lines?.isQueued() === true).length,
    }),
    stop: () => {
      for (const { pull } of pulls.values()) pull.controller.abort();
    },
  };
}

/** A reference always begins with its registry (spec/reference.ts). */
const registryOf = (reference: string): string => reference.slice(0, reference.indexOf('/'));

const notThere = (reference: string, what: string): EngineError =>
  new EngineError('image', { kind: 'refused', status: 404 }, `image ${reference} ${what}: not found`);
