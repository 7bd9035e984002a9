/**
 * The containers that the engine has: as it last listed them, or as a later observation found them.
 */
import { EventEmitter } from 'node:events';
import type { Clock } from '../../../lib/time/clock.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import type { CachedEngine } from '../../docker/cached-engine.ts';
import { detailOf } from '../../docker/errors.ts';
import type { Faults } from '../../faults.ts';
import type { SandboxList } from '../../sandbox/sandboxes.ts';
import { inventory, type Presence } from './inventory.ts';
import type { Observed } from '../../docker/observed.ts';

/** A list of the engine's containers that fails for this long is a fault of the host. */
export const engineDegradedMs = 10_000;

export type PresenceMap = ReadonlyMap<ContainerId, Presence>;

interface PresentEvents {
  /** The sandboxes in the engine's list. */
  listed: [list: SandboxList];
}

export interface PresentContainers {
  readonly events: EventEmitter<PresentEvents>;
  /** `undefined` before the engine has listed them for the first time. */
  all(): PresenceMap | undefined;
  /** Lists them again. @returns the previous list @throws EngineError */
  list(): Promise<PresenceMap>;
  /** Takes in the observation of one container. @returns `true` if it has news */
  note(id: ContainerId, observed: Observed): boolean;
  /** Milliseconds since 1970; `null` before the first list. */
  lastListedMs(): number | null;
}

export function createPresentContainers(
  engine: Pick<CachedEngine, 'listAll'>,
  faults: Faults,
  clock: Clock,
): PresentContainers {
  const events = new EventEmitter<PresentEvents>();
  let present: Map<ContainerId, Presence> | undefined;
  let lastListedMs: number | null = null;
  /** The time since which the engine answers and lists nothing; `null` while it lists. */
  let unlistedSinceMs: number | null = null;

  const noteUnlisted = (error: unknown): void => {
    const nowMs = clock.monotonicMs();
    unlistedSinceMs ??= nowMs;
    if (nowMs - unlistedSinceMs < engineDegradedMs) return;
    const seconds = Math.round(engineDegradedMs / 1000);
    faults.raise(
      'engine_degraded',
      `the engine has not listed its containers for ${seconds} s, and the agent decides nothing without that list; ` +
        `look at the engine's log: ${detailOf(error)}`,
    );
  };

  return {
    events,
    all: () => present,
    lastListedMs: () => lastListedMs,
    list: async () => {
      const before = present ?? new Map<ContainerId, Presence>();
      try {
        const { present: found, ...list } = await inventory(engine);
        present = found;
        events.emit('listed', list);
      } catch (error) {
        noteUnlisted(error);
        throw error;
      }
      unlistedSinceMs = null;
      lastListedMs = clock.nowMs();
      faults.clear('engine_degraded');
      return before;
    },
    note: (id, observed) => {
      if (present === undefined) return false;
      if (observed.kind === 'absent') return present.delete(id);
      const before = present.get(id);
      const { tenant, placement } = observed.found;
      if (before?.placement === placement || !Number.isSafeInteger(placement)) return false;
      present.set(id, { tenant, placement, fingerprint: before?.fingerprint ?? '' });
      return true;
    },
  };
}
