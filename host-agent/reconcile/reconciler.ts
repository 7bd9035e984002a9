/**
 * Looks at one container at a time: observes it, updates its restart state, plans, carries out,
 * reports; and again until there is nothing to do. Runs on events and on timers alike; an event
 * only says where to look (level, not edge).
 */
import type { BackoffBounds } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Capacity } from '../../schemas/api/host.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { describe, describeAway } from './describe.ts';
import type { DesiredSet } from '../workload/desired.ts';
import { isListFailure, isOutage } from '../docker/errors.ts';
import type { Engine } from '../docker/engine.ts';
import type { EngineMonitor } from '../docker/engine-monitor.ts';
import type { Executor } from './execute/execute.ts';
import type { Faults } from '../faults.ts';
import { createWorkload, type Workload } from '../workload/workload.ts';
import { observe, type Presence } from './observe/inventory.ts';
import type { LogCollector } from '../logs/collector.ts';
import type { RestartStore } from './restart/restart-store.ts';
import { afterLook, type Look } from './restart/look.ts';
import { evict, type RestartState } from './restart/restart-state.ts';
import type { Metrics } from '../metrics.ts';
import type { Observed } from './observe/observed.ts';
import { plan } from './plan.ts';
import { createQueue } from './queue.ts';
import type { Reporter } from '../control-plane/reporter.ts';
import type { Wanted } from '../workload/wanted.ts';
import { referenceOf } from '../spec/reference.ts';
import type { Owner } from '../docker/ownership.ts';
import { createCarryOut } from './execute/carry-out.ts';
import { createPresentContainers, type PresenceMap } from './observe/present.ts';
import type { Outcome } from './step.ts';

export interface Reconciler {
  setDesired(desired: DesiredSet): void;
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
  onEvent(id: ContainerId): void;
  /** What is wanted of a container, as far as is known now. */
  readonly wanted: Workload['wanted'];
  /**
   * Removes a container that has written too much, and makes it again if it should run. False: it
   * was marked before, or goes anyway.
   */
  evict(id: ContainerId, dockerId: string, message: string): boolean;
  /** References of the images that this host should run. */
  wantedImages(): string[];
  /** Looks for changes whose events were lost. */
  sweep(): Promise<void>;
  used(): Capacity;
  /** When the engine last listed all containers; null before the first time. */
  lastInventoryMs(): number | null;
  orphansHeld(): number;
  stop(): Promise<void>;
}

export interface ReconcilerParts {
  readonly engine: Engine;
  readonly owner: Owner;
  readonly monitor: () => EngineMonitor;
  readonly executor: Executor;
  readonly logs: LogCollector;
  readonly reporter: Reporter;
  readonly faults: Faults;
  readonly restartStore: RestartStore;
  readonly capacity: () => Capacity;
  readonly restartBackoff: BackoffBounds;
  readonly clock: Clock;
  /** A clock for waits, which never steps. */
  readonly steadyMs: () => number;
  readonly metrics: Pick<Metrics, 'step' | 'restart'>;
  readonly log: Log;
}

export function createReconciler(parts: ReconcilerParts): Reconciler {
  const { engine, owner, executor, logs, reporter, restartStore, clock, steadyMs, metrics, log } = parts;
  const bounds = parts.restartBackoff;
  const workload = createWorkload();
  const timers = new Map<ContainerId, NodeJS.Timeout>();
  const present = createPresentContainers(engine, owner, parts.faults, clock);
  let orphanWord: number | null = null;
  let isIsolated = false;
  let isFenced = false;
  let isWaiting = false;
  let isSettled = false;
  let held = 0;
  const queue = createQueue<ContainerId>(
    {
      workers: limits.concurrentSteps,
      slowWorkers: limits.concurrentSlowSteps,
      patienceMs: limits.stepPatienceMs,
    },
    (id) => turn(id),
  );
  /** Containers whose failed look is in the log already. */
  const complained = new Set<ContainerId>();

  const isUp = (): boolean => parts.monitor().status().phase === 'up' && present.all() !== undefined;
  const look = (ids: Iterable<ContainerId>): void => {
    for (const id of ids) queue.enqueue(id);
  };
  const lookAtAll = (): void => look([...workload.ids(), ...(present.all()?.keys() ?? []), ...restartStore.ids()]);
  const later = (id: ContainerId, ms: number): void => {
    clearTimeout(timers.get(id));
    timers.set(
      id,
      setTimeout(() => queue.enqueue(id), ms),
    );
  };

  const judge = (): void => {
    const { orphanState, changed } = workload.judge({
      capacity: parts.capacity(),
      present: present.all(),
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
    look(changed);
  };

  const turn = async (id: ContainerId): Promise<void> => {
    clearTimeout(timers.get(id));
    timers.delete(id);
    const status = parts.monitor().status();
    if (status.phase !== 'up' || !isUp()) return;
    if (isWaiting && !isFenced) return;
    try {
      await reconcile(id, status.watchedSinceMs);
      complained.delete(id);
    } catch (error) {
      if (isOutage(error)) {
        parts.monitor().suspect();
        later(id, limits.stepOutageRetryMs);
        return;
      }
      complain(id, error);
      later(id, limits.stepBugRetryMs);
    }
  };

  /**
   * Logs an error once for each container until a look succeeds. An engine that lists nothing is a
   * fault of the host, reported as such.
   */
  const complain = (id: ContainerId, error: unknown): void => {
    const isSaid = complained.has(id) || isListFailure(error);
    log[isSaid ? 'debug' : 'error']('reconcile_failed', { container: id, error });
    if (!isSaid) complained.add(id);
  };

  const reconcile = async (id: ContainerId, watchedSinceMs: number): Promise<void> => {
    const observed = await observe(engine, owner, id);
    if (present.note(id, observed)) judge();
    const wanted = workload.wanted(id);
    if (observed.kind === 'absent' && !workload.knows(id)) {
      forget(id);
      return;
    }
    const look: Look = { wanted, observed, nowMs: steadyMs(), watchedSinceMs, backoff: bounds };
    const restart = afterLook(restartStore.of(id), look);
    restartStore.set(id, restart);
    followLogs(observed, restart);
    report(id, wanted, observed, restart);
    await carryOut({ id, wanted, observed }, plan(wanted, observed, restart, steadyMs()));
  };

  const forget = (id: ContainerId): void => {
    restartStore.forget(id);
    complained.delete(id);
    reporter.forget(id);
    logs.forget(id);
  };

  const followLogs = (observed: Observed, restart: RestartState): void => {
    if (observed.kind === 'absent') return;
    const { dockerId, state, tenant, id } = observed.found;
    if ('run' in state && restart.drained !== dockerId) logs.follow({ tenant, id }, dockerId, state.run);
  };

  /**
   * Converts the end of a wait to wall-clock time. In whole seconds, so that small corrections of
   * the clock cause no report.
   */
  const onWall = (restart: RestartState): RestartState => {
    const aheadMs = Math.round((clock.nowMs() - steadyMs()) / 1000) * 1000;
    if (restart.attempt.phase !== 'waiting' || aheadMs === 0) return restart;
    return { ...restart, attempt: { phase: 'waiting', untilMs: restart.attempt.untilMs + aheadMs } };
  };

  const report = (id: ContainerId, wanted: Wanted, observed: Observed, restart: RestartState): void => {
    const description = describe(wanted, observed, onWall(restart));
    if (description === undefined || !('container' in wanted)) return;
    const { tenant, generation } = wanted.container;
    reporter.set({ tenant, id, generation, description });
  };

  const onEnded = (id: ContainerId, outcome: Outcome): void => {
    if (outcome.kind !== 'outage') {
      queue.enqueue(id);
      return;
    }
    parts.monitor().suspect();
    later(id, limits.stepOutageRetryMs);
  };
  const carryOut = createCarryOut({
    executor,
    restartStore,
    backoff: bounds,
    steadyMs,
    metrics,
    log,
    lookLater: later,
    onBegun: ({ id, wanted, observed }) => report(id, wanted, observed, restartStore.of(id)),
    onEnded,
  });

  const reportAway = (ids: Iterable<ContainerId>, sinceMs: number): void => {
    const last = new Map([...reporter.all()].map(({ id, description }) => [id, description]));
    for (const id of ids) {
      const wanted = workload.wanted(id);
      if (!('container' in wanted)) continue;
      const { tenant, generation } = wanted.container;
      reporter.set({ tenant, id, generation, description: describeAway(last.get(id), sinceMs) });
    }
  };

  const listPresent = async (): Promise<PresenceMap> => {
    const before = await present.list();
    judge();
    return before;
  };

  return {
    setDesired: (desired) => {
      isSettled = false;
      const changed = workload.setDesired(desired);
      judge();
      look(changed);
      const status = parts.monitor().status();
      if (status.phase === 'away') reportAway(changed, status.sinceMs);
    },
    desiredSettled: () => {
      if (isSettled) return;
      isSettled = true;
      judge();
    },
    setOrphanWord: (word) => {
      if (word === orphanWord) return;
      orphanWord = word;
      judge();
    },
    strangers: workload.strangers,
    unjudged: workload.unjudged,
    hearVerdicts: (named, gone) => {
      workload.hearVerdicts(named, gone);
      judge();
    },
    setFenced: (next) => {
      if (next === isFenced) return;
      isFenced = next;
      judge();
    },
    setIsolated: (next) => {
      if (next === isIsolated) return;
      isIsolated = next;
      judge();
    },
    setWaiting: (next) => {
      const isOver = isWaiting && !next;
      isWaiting = next;
      if (isOver) lookAtAll();
    },
    onEngineUp: async () => {
      await listPresent();
      lookAtAll();
    },
    onEngineAway: (sinceMs) => reportAway(workload.ids(), sinceMs),
    onEvent: (id) => queue.enqueue(id),
    wanted: workload.wanted,
    evict: (id, dockerId, message) => {
      const before = restartStore.of(id);
      const after = evict(before, dockerId, message);
      if (after === before) return false;
      restartStore.set(id, after);
      queue.enqueue(id);
      return true;
    },
    wantedImages: () =>
      workload.ids().flatMap((id) => {
        const wanted = workload.wanted(id);
        const reference =
          'container' in wanted && wanted.want !== 'removed' ? referenceOf(wanted.container) : undefined;
        return reference?.kind === 'image' ? [reference.reference] : [];
      }),
    sweep: async () => {
      if (!isUp()) return;
      const before = await listPresent();
      const after = present.all() ?? new Map<ContainerId, Presence>();
      const hasChanged = (id: ContainerId) => before.get(id)?.fingerprint !== after.get(id)?.fingerprint;
      look([...before.keys(), ...after.keys()].filter(hasChanged));
      look(workload.ids().filter((id) => !after.has(id)));
    },
    used: () => workload.used(),
    lastInventoryMs: present.lastListedMs,
    orphansHeld: () => workload.orphansHeld(),
    stop: async () => {
      await queue.stop();
      for (const timer of timers.values()) clearTimeout(timer);
      await restartStore.flush();
    },
  };
}
