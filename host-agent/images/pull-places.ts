/** The places that pulls take turns in (pull-slots.ts). */
import type { TenantId } from '../../schemas/ids.ts';
import { EngineError } from '../docker/errors.ts';
import { hasRoomAside, nextPull, type PullAsk, type PullBounds, type RunningPull } from './pull-slots.ts';

export interface PlaceBounds extends PullBounds {
  /** A pull that takes longer moves aside. */
  readonly patienceMs: number;
}

/** A pull's request for a place. `tenants` is read at each turn, because tenants come and go. */
export interface PlaceAsk {
  readonly tenants: () => Iterable<TenantId>;
  readonly registry: string;
  readonly signal: AbortSignal;
}

export interface PullPlaces {
  /** Does the work when a place is free. Rejects if the signal aborts first. */
  run<T>(ask: PlaceAsk, work: () => Promise<T>): Promise<T>;
  /** The tenants that wait for a pull have changed. */
  reconsider(): void;
  counts(): Readonly<Record<'waiting' | 'running' | 'aside', number>>;
}

interface Waiting extends PullAsk {
  readonly begin: (tenant: TenantId) => void;
}

interface Running extends RunningPull {
  readonly tenants: () => Iterable<TenantId>;
  tenant: TenantId;
  isAside: boolean;
  /** `true` if it has outlasted `patienceMs`, and waits for a place aside. */
  isOverdue: boolean;
}

const givenUp = (): EngineError => new EngineError('image pull', { kind: 'aborted' }, 'given up');

export function createPullPlaces(bounds: PlaceBounds): PullPlaces {
  const waiting = new Set<Waiting>();
  const running = new Set<Running>();
  let order = 0;

  const settle = (): void => {
    for (const pull of running) {
      const tenants = [...pull.tenants()];
      if (!tenants.includes(pull.tenant)) pull.tenant = tenants[0] ?? pull.tenant;
      if (!pull.isOverdue || !hasRoomAside([...running], bounds)) continue;
      pull.isOverdue = false;
      pull.isAside = true;
    }
  };
  const dispatch = (): void => {
    settle();
    for (;;) {
      const next = nextPull(waiting, [...running], bounds);
      if (next === undefined) return;
      waiting.delete(next.ask);
      next.ask.begin(next.tenant);
    }
  };

  /** `undefined` if the signal aborted before there was a place. */
  const wait = ({ tenants, registry, signal }: PlaceAsk): Promise<Running | undefined> =>
    new Promise((resolve) => {
      const asked: Waiting = {
        get tenants() {
          return tenants();
        },
        registry,
        order: (order += 1),
        begin: (tenant) => {
          signal.removeEventListener('abort', giveUp);
          const pull: Running = { tenants, tenant, registry, isAside: false, isOverdue: false };
          running.add(pull);
          resolve(pull);
        },
      };
      const giveUp = (): void => {
        waiting.delete(asked);
        resolve(undefined);
      };
      signal.addEventListener('abort', giveUp, { once: true });
      waiting.add(asked);
      dispatch();
    });

  return {
    run: async (ask, work) => {
      const place = await wait(ask);
      if (place === undefined) throw givenUp();
      const timer = setTimeout(() => {
        place.isOverdue = true;
        dispatch();
      }, bounds.patienceMs);
      try {
        if (ask.signal.aborted) throw givenUp();
        return await work();
      } finally {
        clearTimeout(timer);
        running.delete(place);
        dispatch();
      }
    },
    reconsider: dispatch,
    counts: () => {
      const aside = [...running].filter(({ isAside }) => isAside).length;
      return { waiting: waiting.size, running: running.size - aside, aside };
    },
  };
}
