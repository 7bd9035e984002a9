/**
 * Judges which containers of this host are admitted and which leave it, and judges again when
 * something changes that the judgement depends on.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Log } from '../../lib/log.ts';
import type { Capacity } from '../../schemas/api/host.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import type { Workload } from '../workload/workload.ts';
import type { PresentContainers } from './observe/present.ts';
import type { RestartStore } from './restart/restart-store.ts';

export interface Circumstances {
  /** The number of the operator's latest approval of held orphans; null: not known yet. */
  readonly orphanWord: number | null;
  /** No sync answers are outstanding: what is absent from the desired set may be an orphan. */
  readonly isSettled: boolean;
  /** Cut off for longer than the operator allows: nothing may run. */
  readonly isIsolated: boolean;
  /** An operator removed this host by force: nothing may run. */
  readonly isFenced: boolean;
}

export interface Judge {
  circumstances(): Circumstances;
  /**
   * Judges again, under these circumstances.
   * @param touched containers that may have come or gone on the engine; `any`: it was listed
   */
  judge(change: Partial<Circumstances>, touched: readonly ContainerId[] | 'any'): void;
  /** Judges again if that is news. */
  set(change: Partial<Circumstances>): void;
}

export interface JudgeParts {
  readonly workload: Workload;
  readonly restartStore: Pick<RestartStore, 'orphans' | 'setOrphans'>;
  readonly present: Pick<PresentContainers, 'all'>;
  readonly capacity: () => Capacity;
  /** What is wanted of these containers has changed. */
  readonly onChanged: (ids: readonly ContainerId[]) => void;
  readonly log: Log;
}

export function createJudge(parts: JudgeParts): Judge {
  const { workload, restartStore, present, log } = parts;
  let circumstances: Circumstances = { orphanWord: null, isSettled: false, isIsolated: false, isFenced: false };
  let held = 0;

  const judge: Judge['judge'] = (change, touched) => {
    circumstances = { ...circumstances, ...change };
    const { orphanWord, isSettled, isIsolated, isFenced } = circumstances;
    const { orphanState, changed } = workload.judge({
      capacity: parts.capacity(),
      present: present.all(),
      touched: touched === 'any' ? undefined : touched,
      orphanState: restartStore.orphans(),
      orphanWord,
      isIsolated: isIsolated || isFenced,
      isSettled,
    });
    restartStore.setOrphans(orphanState);
    if (workload.orphansHeld() !== held) {
      held = workload.orphansHeld();
      log.warn('orphans_held', { orphans: held, present: present.all()?.size });
    }
    parts.onChanged(changed);
  };

  return {
    circumstances: () => circumstances,
    judge,
    set: (change) => {
      if (!isDeepStrictEqual({ ...circumstances, ...change }, circumstances)) judge(change, []);
    },
  };
}
