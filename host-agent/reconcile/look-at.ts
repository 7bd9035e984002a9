/**
 * One look at one container: observes it, updates its restart state, reports it, plans the next
 * step and carries it out.
 */
import type { BackoffBounds } from '../../lib/time/backoff.ts';
import type { Log } from '../../lib/log.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import type { Reporter } from '../control-plane/reporter.ts';
import type { CachedEngine } from '../docker/cached-engine.ts';
import type { LogCollector } from '../logs/collector.ts';
import type { Metrics } from '../metrics.ts';
import type { Sandboxes } from '../sandbox/sandboxes.ts';
import type { Workload } from '../workload/workload.ts';
import { createCarryOut } from './execute/carry-out.ts';
import type { Executor } from './execute/execute.ts';
import { observe } from './observe/inventory.ts';
import type { Observed } from './observe/observed.ts';
import type { PresentContainers } from './observe/present.ts';
import { plan } from './plan.ts';
import type { Reports } from './reports.ts';
import { afterLook } from './restart/look.ts';
import type { RestartState } from './restart/restart-state.ts';
import type { RestartStore } from './restart/restart-store.ts';
import type { Outcome } from './step.ts';

export interface LookParts {
  readonly engine: CachedEngine;
  readonly executor: Executor;
  readonly sandboxes: Pick<Sandboxes, 'release'> | undefined;
  readonly logs: LogCollector;
  readonly reporter: Pick<Reporter, 'forget'>;
  readonly reports: Reports;
  readonly restartStore: RestartStore;
  readonly workload: Pick<Workload, 'wanted' | 'knows'>;
  readonly present: Pick<PresentContainers, 'note'>;
  readonly backoff: BackoffBounds;
  /** A clock for waits, which never steps. */
  readonly steadyMs: () => number;
  readonly metrics: Pick<Metrics, 'step' | 'restart'>;
  readonly log: Log;
  /** The look found a container that the engine did not list, or missed one that it did. */
  readonly onPresenceChanged: (id: ContainerId) => void;
  /** Looks at the container again after so long. */
  readonly lookLater: (id: ContainerId, ms: number) => void;
  readonly onStepEnded: (id: ContainerId, outcome: Outcome) => void;
}

export type LookAt = (id: ContainerId, watchedSinceMs: number) => Promise<void>;

/** Rejects where the engine does not answer. */
export function createLookAt(parts: LookParts): LookAt {
  const { engine, logs, reports, restartStore, workload, backoff, steadyMs } = parts;

  const carryOut = createCarryOut({
    ...parts,
    onBegun: (seen) => reports.looked(seen, restartStore.of(seen.id)),
    onEnded: parts.onStepEnded,
  });

  const forget = (id: ContainerId): void => {
    restartStore.forget(id);
    parts.reporter.forget(id);
    logs.forget(id);
    parts.sandboxes?.release(id);
  };

  const followLogs = (observed: Observed, restart: RestartState): void => {
    if (observed.kind === 'absent') return;
    const { dockerId, state, tenant, id } = observed.found;
    if ('run' in state && restart.drained !== dockerId) logs.follow({ tenant, id }, dockerId, state.run);
  };

  return async (id, watchedSinceMs) => {
    const observed = await observe(engine, id, workload.wanted(id).want === 'stopped');
    if (parts.present.note(id, observed)) parts.onPresenceChanged(id);
    const wanted = workload.wanted(id);
    if (observed.kind === 'absent' && !workload.knows(id)) {
      forget(id);
      return;
    }
    const look = { wanted, observed, nowMs: steadyMs(), watchedSinceMs, backoff };
    const restart = afterLook(restartStore.of(id), look);
    restartStore.set(id, restart);
    followLogs(observed, restart);
    const seen = { id, wanted, observed };
    reports.looked(seen, restart);
    await carryOut(seen, plan(wanted, observed, restart, steadyMs()));
  };
}
