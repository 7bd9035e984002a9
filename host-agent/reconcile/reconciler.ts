/**
 * Decides when to reconcile which container, and does so again until there is nothing to do. Runs
 * on events and on timers alike; an event only names the container (level, not edge).
 */
import type { ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { Lease } from '../link/lease.ts';
import type { EngineMonitor, EngineStatus } from '../docker/engine-monitor.ts';
import { isListFailure, isOutage } from '../docker/errors.ts';
import type { TenantNetwork } from '../network/tenant-network.ts';
import type { DeclaredFiles } from '../secrets/declared-files.ts';
import type { SecretFiles } from '../secrets/files.ts';
import type { Workload } from '../desired/workload.ts';
import { createCauses } from './causes.ts';
import { createReconcileOne, type ReconcileOneParts } from './reconcile-one.ts';
import type { Presence } from './observe/inventory.ts';
import type { PresentContainers, PresenceMap } from './observe/present.ts';
import { createQueue } from './queue.ts';
import { createReports, type ReportsParts } from './reports.ts';

/**
 * The wait before another step for a container whose last engine call had no answer, or hit a
 * bug.
 */
const stepOutageRetryMs = 1000;
const stepBugRetryMs = 5000;

export interface Reconciler {
  /** Subscribes to changes from now on. */
  start(): void;
  /** Reconciles a container that may need a step. */
  enqueue(id: ContainerId): void;
  /** Finds changes whose events were lost. @throws EngineError */
  sweep(): Promise<void>;
  /** The engine answers, or answers again; or it has stopped answering. @throws EngineError */
  onEngine(status: EngineStatus): Promise<void>;
  /** Begins nothing more; resolves when the work in progress has ended. */
  stop(): Promise<void>;
}

/** The parts that the reconciler makes itself. */
type OfReconciler = 'causes' | 'reports' | 'lookLater' | 'onStepEnded';

interface ReconcilerParts extends Omit<ReconcileOneParts, OfReconciler>, Pick<ReportsParts, 'clock'> {
  readonly tenantNetwork: Pick<TenantNetwork, 'detach' | 'seen'> | undefined;
  readonly reporter: ReportsParts['reporter'];
  readonly workload: Workload;
  readonly lease: Pick<Lease, 'verdict' | 'events'>;
  readonly monitor: Pick<EngineMonitor, 'status' | 'suspect'>;
  readonly present: PresentContainers;
  readonly secretFiles: Pick<SecretFiles, 'keep' | 'ids'>;
  readonly declaredFiles: Pick<DeclaredFiles, 'keep' | 'ids'>;
}

export function createReconciler(parts: ReconcilerParts): Reconciler {
  const { workload, lease, monitor, present, health, restartStore, log } = parts;
  const causes = createCauses(parts);
  const reports = createReports(parts);
  const bounds = {
    workers: limits.concurrentSteps,
    slowWorkers: limits.concurrentSlowSteps,
    patienceMs: limits.stepPatienceMs,
  };
  const queue = createQueue<ContainerId>(bounds, (id) => turn(id));
  /** Containers whose failed reconciliation is in the log already. */
  const complained = new Set<ContainerId>();

  const enqueueAll = (ids: Iterable<ContainerId>): void => {
    for (const id of ids) queue.enqueue(id);
  };
  const lookAtAll = (): void =>
    enqueueAll([
      ...workload.ids(),
      ...(present.all()?.keys() ?? []),
      ...restartStore.ids(),
      ...parts.secretFiles.ids(),
      ...parts.declaredFiles.ids(),
    ]);

  const onOutage = (id: ContainerId): void => {
    monitor.suspect();
    queue.later(id, stepOutageRetryMs);
  };
  const reconcileOne = createReconcileOne({
    ...parts,
    causes,
    reports,
    lookLater: queue.later,
    onStepEnded: (id, outcome) => {
      if (outcome.kind === 'outage') onOutage(id);
      // A container that has ended has no back-off.
      else if (outcome.kind === 'retry' && restartStore.of(id).attempt.phase === 'ended')
        queue.later(id, stepBugRetryMs);
      else queue.enqueue(id);
    },
  });

  const turn = async (id: ContainerId): Promise<void> => {
    const status = monitor.status();
    if (status.phase !== 'up' || present.all() === undefined || lease.verdict() === 'wait') return;
    try {
      await reconcileOne(id, status.watchedSinceMs);
      complained.delete(id);
    } catch (error) {
      if (isOutage(error)) {
        onOutage(id);
        return;
      }
      complain(id, error);
      queue.later(id, stepBugRetryMs);
    }
  };

  /**
   * Logs an error once for each container until its reconciliation succeeds. An engine that lists
   * nothing is a fault of the host, reported as such.
   */
  const complain = (id: ContainerId, error: unknown): void => {
    const isSaid = complained.has(id) || isListFailure(error);
    log[isSaid ? 'debug' : 'error']('reconcile_failed', { container: id, error, ...causes.of(id)?.fields });
    if (!isSaid) complained.add(id);
  };

  const listPresent = async (): Promise<PresenceMap> => {
    const before = await present.list();
    workload.evaluate('any');
    return before;
  };

  return {
    start: () => {
      workload.events.on('asked', causes.asked);
      workload.events.on('desired', (ids, from) => {
        causes.heard(ids, from);
        const status = monitor.status();
        if (status.phase === 'away') reports.away(ids, status.sinceMs);
      });
      workload.events.on('changed', enqueueAll);
      health.events.on('changed', queue.enqueue);
      let isWaiting = lease.verdict() === 'wait';
      lease.events.on('verdict', (verdict) => {
        const isOver = isWaiting && verdict !== 'wait';
        isWaiting = verdict === 'wait';
        if (isOver) lookAtAll();
      });
    },
    enqueue: queue.enqueue,
    sweep: async () => {
      if (monitor.status().phase !== 'up' || present.all() === undefined) return;
      const before = await listPresent();
      const after = present.all() ?? new Map<ContainerId, Presence>();
      const hasChanged = (id: ContainerId) => before.get(id)?.fingerprint !== after.get(id)?.fingerprint;
      enqueueAll([...before.keys(), ...after.keys()].filter(hasChanged));
      enqueueAll(workload.ids().filter((id) => !after.has(id)));
    },
    onEngine: async (status) => {
      if (status.phase === 'away') {
        reports.away(workload.ids(), status.sinceMs);
        return;
      }
      await listPresent();
      lookAtAll();
    },
    stop: async () => {
      await queue.stop();
      await restartStore.flush();
    },
  };
}
