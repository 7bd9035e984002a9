/**
 * Decides when to look at which container, and looks again until there is nothing to do. Runs on
 * events and on timers alike; an event only says where to look (level, not edge).
 */
import type { BackoffBounds } from '../../lib/time/backoff.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Tracer } from '../../lib/trace/tracer.ts';
import type { Capacity } from '../../schemas/api/host.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import { limits } from '../../schemas/limits.ts';
import type { Reporter } from '../control-plane/reporter.ts';
import type { EngineMonitor } from '../docker/engine-monitor.ts';
import type { CachedEngine } from '../docker/cached-engine.ts';
import { isListFailure, isOutage } from '../docker/errors.ts';
import type { Faults } from '../faults.ts';
import type { HealthChecks } from '../health/checks.ts';
import type { LogCollector } from '../logs/collector.ts';
import type { Metrics } from '../metrics.ts';
import type { Sandboxes } from '../sandbox/sandboxes.ts';
import type { SecretFiles } from '../secrets/files.ts';
import type { DesiredSet } from '../workload/desired.ts';
import type { Volumes } from '../volumes/volumes.ts';
import { imagesOf, versionsOf } from '../workload/wanted.ts';
import { createWorkload, type Workload } from '../workload/workload.ts';
import { createCauses } from './causes.ts';
import type { Executor } from './execute/execute.ts';
import { createJudge } from './judge.ts';
import { createLookAt } from './look-at.ts';
import type { Presence } from './observe/inventory.ts';
import { createPresentContainers, type PresenceMap } from './observe/present.ts';
import { createQueue } from './queue.ts';
import { createReports } from './reports.ts';
import { overDisk, withinDisk, type RestartState } from './restart/restart-state.ts';
import type { RestartStore } from './restart/restart-store.ts';

export interface Reconciler {
  /** An ask for the desired set leaves. */
  syncBegins(): void;
  /** @param from where the set comes from: the disk, when the agent starts, or its owners */
  setDesired(desired: DesiredSet, from: 'disk' | 'owners'): void;
  /** The set is settled: what is absent from it now may be an orphan. */
  desiredSettled(): void;
  /** An operator's approval of held orphans. */
  setOrphanWord(word: number): void;
  readonly strangers: Workload['strangers'];
  readonly unjudged: Workload['unjudged'];
  readonly hearVerdicts: Workload['hearVerdicts'];
  /**
   * Cut off for longer than the operator allows: nothing may run until the control plane is back.
   */
  setIsolated(isIsolated: boolean): void;
  /**
   * The agent does not know yet whether containers may run: it starts, stops and removes none
   * meanwhile.
   */
  setWaiting(isWaiting: boolean): void;
  /**
   * An operator removed this host by force: nothing may run until the control plane accepts it
   * again.
   */
  setFenced(isFenced: boolean): void;
  /** The engine answers, or answers again: look at everything. */
  onEngineUp(): Promise<void>;
  onEngineAway(sinceMs: number): void;
  /** Looks at a container where something may be to do. */
  lookAt(id: ContainerId): void;
  /** What is wanted of a container, as far as is known now. */
  readonly wanted: Workload['wanted'];
  /** The desired set names it. */
  readonly isKnown: Workload['knows'];
  /** The engine has a copy of it; undefined: not known yet. */
  isPresent(id: ContainerId): boolean | undefined;
  /**
   * Stops a copy that has written too much; it keeps what it wrote. False: it is stopped for that
   * already, or should not run.
   */
  evict(id: ContainerId, dockerId: string, message: string): boolean;
  /** It is within its limit: starts it again, if it was stopped for that. */
  relieve(id: ContainerId, dockerId: string): void;
  /** References of the images that this host should run. */
  wantedImages(): string[];
  /** What this host should have, or may go back to; undefined: not known yet. */
  wantedVersions(): readonly DesiredContainer[] | undefined;
  /** Looks for changes whose events were lost. */
  sweep(): Promise<void>;
  used(): Capacity;
  /** When the engine last listed all containers; null before the first time. */
  lastInventoryMs(): number | null;
  orphansHeld(): number;
  stop(): Promise<void>;
}

export interface ReconcilerParts {
  readonly engine: CachedEngine;
  readonly monitor: () => EngineMonitor;
  readonly executor: Executor;
  readonly sandboxes: Pick<Sandboxes, 'look' | 'release'> | undefined;
  readonly logs: LogCollector;
  readonly health: HealthChecks;
  readonly secretFiles: Pick<SecretFiles, 'keep' | 'ids'>;
  readonly volumes: Pick<Volumes, 'remove'>;
  readonly reporter: Reporter;
  readonly faults: Faults;
  readonly restartStore: RestartStore;
  readonly capacity: () => Capacity;
  readonly restartBackoff: BackoffBounds;
  /** How long the new version of an update must stay up. */
  readonly updateVerifyMs: number;
  /** CPU of the engine's host. */
  readonly cpuMillis: () => number;
  readonly clock: Clock;
  /** A clock for waits, which never steps. */
  readonly steadyMs: () => number;
  /** Undefined: nothing is traced. */
  readonly tracer?: Tracer | undefined;
  readonly metrics: Pick<Metrics, 'step' | 'restart'>;
  readonly log: Log;
}

export function createReconciler(parts: ReconcilerParts): Reconciler {
  const { engine, reporter, restartStore, clock, steadyMs, tracer, log } = parts;
  const workload = createWorkload();
  const causes = createCauses({ workload, tracer, log });
  const present = createPresentContainers(engine, parts.faults, clock, (list) => {
    void parts.sandboxes
      ?.look(list, workload.knows)
      .catch((error: unknown) => log.debug('sandboxes_not_looked_at', { error }));
  });
  const reports = createReports({ reporter, workload, clock, steadyMs });
  let isWaiting = false;
  const bounds = {
    workers: limits.concurrentSteps,
    slowWorkers: limits.concurrentSlowSteps,
    patienceMs: limits.stepPatienceMs,
  };
  const queue = createQueue<ContainerId>(bounds, (id) => turn(id));
  /** Containers whose failed look is in the log already. */
  const complained = new Set<ContainerId>();

  const isUp = (): boolean => parts.monitor().status().phase === 'up' && present.all() !== undefined;
  const look = (ids: Iterable<ContainerId>): void => {
    for (const id of ids) queue.enqueue(id);
  };
  const lookAtAll = (): void =>
    look([...workload.ids(), ...(present.all()?.keys() ?? []), ...restartStore.ids(), ...parts.secretFiles.ids()]);
  const judge = createJudge({ ...parts, workload, present, onChanged: look });

  const onOutage = (id: ContainerId): void => {
    parts.monitor().suspect();
    queue.later(id, limits.stepOutageRetryMs);
  };
  const lookAt = createLookAt({
    ...parts,
    tracer,
    causes,
    workload,
    present,
    reports,
    backoff: parts.restartBackoff,
    onPresenceChanged: (id) => judge.judge({}, [id]),
    lookLater: queue.later,
    onStepEnded: (id, outcome) => {
      if (outcome.kind === 'outage') onOutage(id);
      // What has ended has no back-off.
      else if (outcome.kind === 'retry' && restartStore.of(id).attempt.phase === 'ended')
        queue.later(id, limits.stepBugRetryMs);
      else queue.enqueue(id);
    },
  });

  const turn = async (id: ContainerId): Promise<void> => {
    const status = parts.monitor().status();
    if (status.phase !== 'up' || !isUp()) return;
    if (isWaiting && !judge.circumstances().isFenced) return;
    try {
      await lookAt(id, status.watchedSinceMs);
      complained.delete(id);
    } catch (error) {
      if (isOutage(error)) {
        onOutage(id);
        return;
      }
      complain(id, error);
      queue.later(id, limits.stepBugRetryMs);
    }
  };

  /**
   * Logs an error once for each container until a look succeeds. An engine that lists nothing is a
   * fault of the host, reported as such.
   */
  const complain = (id: ContainerId, error: unknown): void => {
    const isSaid = complained.has(id) || isListFailure(error);
    log[isSaid ? 'debug' : 'error']('reconcile_failed', { container: id, error, ...causes.of(id)?.fields });
    if (!isSaid) complained.add(id);
  };

  /** @returns whether that is news */
  const noteDisk = (id: ContainerId, after: (before: RestartState) => RestartState): boolean => {
    const before = restartStore.of(id);
    const next = after(before);
    if (next === before) return false;
    restartStore.set(id, next);
    queue.enqueue(id);
    return true;
  };

  const listPresent = async (): Promise<PresenceMap> => {
    const before = await present.list();
    judge.judge({}, 'any');
    return before;
  };

  return {
    syncBegins: causes.asked,
    setDesired: (desired, from) => {
      const changed = workload.setDesired(desired);
      causes.heard(changed, from);
      judge.judge({ isSettled: false }, []);
      look(changed);
      const status = parts.monitor().status();
      if (status.phase === 'away') reports.away(changed, status.sinceMs);
    },
    desiredSettled: () => judge.set({ isSettled: true }),
    setOrphanWord: (orphanWord) => judge.set({ orphanWord }),
    strangers: workload.strangers,
    unjudged: workload.unjudged,
    hearVerdicts: (named, gone) => {
      workload.hearVerdicts(named, gone);
      judge.judge({}, []);
    },
    setFenced: (isFenced) => judge.set({ isFenced }),
    setIsolated: (isIsolated) => judge.set({ isIsolated }),
    setWaiting: (next) => {
      const isOver = isWaiting && !next;
      isWaiting = next;
      if (isOver) lookAtAll();
    },
    onEngineUp: async () => {
      await listPresent();
      lookAtAll();
    },
    onEngineAway: (sinceMs) => reports.away(workload.ids(), sinceMs),
    lookAt: queue.enqueue,
    wanted: workload.wanted,
    isKnown: workload.knows,
    isPresent: (id) => present.all()?.has(id),
    evict: (id, dockerId, message) => noteDisk(id, (before) => overDisk(before, dockerId, message)),
    relieve: (id, dockerId) => void noteDisk(id, (before) => withinDisk(before, dockerId)),
    wantedImages: () => workload.ids().flatMap((id) => imagesOf(workload.wanted(id))),
    wantedVersions: () =>
      workload.isComplete() ? workload.ids().flatMap((id) => versionsOf(workload.wanted(id))) : undefined,
    sweep: async () => {
      if (!isUp()) return;
      const before = await listPresent();
      const after = present.all() ?? new Map<ContainerId, Presence>();
      const hasChanged = (id: ContainerId) => before.get(id)?.fingerprint !== after.get(id)?.fingerprint;
      look([...before.keys(), ...after.keys()].filter(hasChanged));
      look(workload.ids().filter((id) => !after.has(id)));
    },
    used: workload.used,
    lastInventoryMs: present.lastListedMs,
    orphansHeld: workload.orphansHeld,
    stop: async () => {
      await queue.stop();
      await restartStore.flush();
    },
  };
}
