/**
 * Reconciles one container, one step: observes it, updates its restart state, reports it, plans the
 * next step and carries it out.
 */
import type { BackoffBounds } from '../../lib/time/backoff.ts';
import type { Log } from '../../lib/log.ts';
import type { Span, Tracer } from '../../lib/trace/tracer.ts';
import { policyOf, type HealthCheck } from '../../schemas/api/policy.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import type { Reporter } from '../link/reporter.ts';
import type { CachedEngine } from '../docker/cached-engine.ts';
import type { HealthChecks } from '../health/checks.ts';
import type { LogCollector } from '../logs/collector.ts';
import type { Metrics } from '../metrics.ts';
import type { TenantNetwork } from '../network/tenant-network.ts';
import type { Sandboxes } from '../sandbox/sandboxes.ts';
import type { DeclaredFiles } from '../secrets/declared-files.ts';
import type { SecretFiles } from '../secrets/files.ts';
import { settingsOf, type LimitingHost } from '../spec/create-body.ts';
import type { Volumes } from '../volumes/volumes.ts';
import { isMade, type Declared, type Updating, type Wanted } from '../desired/wanted.ts';
import type { Workload } from '../desired/workload.ts';
import type { Cause, Causes } from './causes.ts';
import type { Executor } from './execute/execute.ts';
import { absent, observe, observedFrom, otherLimits, type Found, type Observed } from '../docker/observed.ts';
import type { PresentContainers } from './observe/present.ts';
import { plan } from './plan.ts';
import type { Reports, Seen } from './reports.ts';
import { afterLook } from './restart/look.ts';
import { blank, endOperation, settle, withStep, type RestartState } from './restart/restart-state.ts';
import type { RestartStore } from './restart/restart-store.ts';
import type { LongStep, Operation, Outcome, Step } from './step.ts';
import { isUpdating, lookAtVersions, planVersions, preparationOf, unverifiedMs, type Watch } from './update.ts';

/** Characters of an engine's text in one line of the agent's log. */
const engineDetailChars = 1000;

export interface ReconcileOneParts extends Omit<StepParts, 'onBegun' | 'onEnded'> {
  readonly engine: CachedEngine;
  readonly causes: Pick<Causes, 'of' | 'settled'>;
  readonly sandboxes: Pick<Sandboxes, 'release'> | undefined;
  readonly tenantNetwork: Pick<TenantNetwork, 'detach'> | undefined;
  readonly logs: LogCollector;
  readonly health: HealthChecks;
  readonly secretFiles: Pick<SecretFiles, 'keep'>;
  readonly declaredFiles: Pick<DeclaredFiles, 'keep'>;
  readonly volumes: Pick<Volumes, 'remove'>;
  readonly reporter: Pick<Reporter, 'forget'>;
  readonly reports: Reports;
  readonly restartStore: RestartStore;
  readonly workload: Pick<Workload, 'wanted' | 'knows' | 'evaluate'>;
  readonly present: Pick<PresentContainers, 'note'>;
  /** Milliseconds that the new version of an update must stay up. */
  readonly updateVerifyMs: number;
  readonly engineHost: () => LimitingHost;
  readonly onStepEnded: (id: ContainerId, outcome: Outcome) => void;
}

export type ReconcileOne = (id: ContainerId, watchedSinceMs: number) => Promise<void>;

/** Rejects if the engine does not answer. */
export function createReconcileOne(parts: ReconcileOneParts): ReconcileOne {
  const { engine, logs, health, causes, reports, restartStore, workload, backoff, steadyMs, updateVerifyMs, log } =
    parts;

  const carryOut = createCarryOut({
    ...parts,
    onBegun: (seen) => reports.looked(seen, restartStore.of(seen.id)),
    onEnded: parts.onStepEnded,
  });

  /**
   * The restart states of new versions that are made beside the running one, each like a container
   * of its own.
   */
  const preparations = new Map<ContainerId, RestartState>();
  const carryOutBeside = createCarryOut({
    ...parts,
    restartStore: {
      of: (id) => preparations.get(id) ?? blank,
      set: (id, restart) => void preparations.set(id, restart),
    },
    // The report is about the running copy.
    onBegun: () => {},
    onEnded: parts.onStepEnded,
  });
  const endPreparation = (id: ContainerId): void => {
    if (preparations.get(id)?.operation?.kind === 'pull') parts.executor.cancelPull(id);
    preparations.delete(id);
  };

  const forget = (id: ContainerId): void => {
    endPreparation(id);
    restartStore.forget(id);
    parts.reporter.forget(id);
    logs.forget(id);
    health.end(id);
    parts.sandboxes?.release(id);
    parts.tenantNetwork?.detach(id);
  };

  /** The found copies, with the results of the agent's own checks for the one that runs. */
  const withHealth = async (id: ContainerId, found: readonly Found[], wanted: Wanted): Promise<readonly Found[]> => {
    const up = found.find(({ state }) => state.phase === 'running');
    const check = up === undefined ? undefined : checkOf(up, wanted);
    if (up?.state.phase !== 'running' || check === undefined) {
      health.end(id);
      return found;
    }
    const state = await health.seen(id, up.state, check);
    return found.map((each) => (each === up ? { ...each, state } : each));
  };

  const followLogs = (observed: Observed, restart: RestartState): void => {
    if (observed.kind === 'absent') return;
    const { dockerId, state, tenant, id } = observed.found;
    if ('run' in state && restart.drained !== dockerId) logs.follow({ tenant, id }, dockerId, state.run);
  };

  /** Makes the new version while the old one runs; it is not started. */
  const prepare = async (id: ContainerId, wanted: Declared & Updating, other: Found | undefined, watch: Watch) => {
    const prepared = preparationOf(wanted);
    const observed: Observed = other === undefined ? absent : { kind: 'present', found: other, extra: [] };
    const before = preparations.get(id) ?? blank;
    const restart = afterLook(before, { wanted: prepared, observed, ...watch });
    preparations.set(id, restart);
    await carryOutBeside({ id, wanted: prepared, observed }, plan(prepared, observed, restart, steadyMs()));
  };

  /**
   * The preparation ends with its phase, or with the update that it was for. The phase is on disk
   * before its steps begin: the stop of a swap must not count as an end after a restart.
   */
  const noteUpdate = async (id: ContainerId, before: RestartState, after: RestartState): Promise<void> => {
    restartStore.set(id, after);
    const { update } = after;
    if (before.update?.since === update?.since && before.update?.phase === update?.phase) return;
    if (update !== null)
      log.info('update_phase_changed', { container: id, phase: update.phase, ...update.why, ...causes.of(id)?.fields });
    endPreparation(id);
    if (update !== null) await restartStore.sync();
  };

  /**
   * Writes the state to disk before the step begins, if a policy depends on it: an agent that is
   * killed meanwhile still knows that a stop was its own, and that a container that may run once
   * has begun. A host that is cut off may have to stop a container that is wanted as running.
   */
  const noteStep = async (id: ContainerId, step: Step, found: readonly Found[], wanted: Wanted): Promise<void> => {
    const before = restartStore.of(id);
    const restart = withStep(before, step, found);
    if (restart === before) return;
    restartStore.set(id, restart);
    if (!('container' in wanted) || wanted.container.desired !== 'running') return;
    const policy = policyOf(wanted.container).restart;
    if (policy === 'never' || (policy === 'on_failure' && step.kind === 'stop')) await restartStore.sync();
  };

  const keepFiles = async (id: ContainerId, specs: readonly string[]): Promise<void> => {
    await parts.secretFiles.keep(id, specs);
    await parts.declaredFiles.keep(id, specs);
  };

  return async (id, watchedSinceMs) => {
    const listed = await observe(engine, id, workload.wanted(id).want === 'stopped');
    const limited = withLimits(listed, workload.wanted(id), parts.engineHost());
    const found = await withHealth(id, limited, workload.wanted(id));
    // The engine did not list it, or no longer has it.
    if (parts.present.note(id, observedFrom(found))) workload.evaluate([id]);
    logs.keep(
      id,
      found.map(({ dockerId }) => dockerId),
    );
    const wanted = workload.wanted(id);
    if (found.length === 0 && !workload.knows(id)) {
      forget(id);
      await keepFiles(id, []);
      return;
    }
    // Removes the volumes before its owner learns that the container is gone, and forgets it.
    if (wanted.want === 'removed' && found.length === 0) await parts.volumes.remove(id);
    if (wanted.want !== 'ignored') await keepFiles(id, specsOf(wanted, found));
    const watch = { nowMs: steadyMs(), watchedSinceMs, backoff };
    const before = { restart: restartStore.of(id), preparation: preparations.get(id) ?? blank };
    const { restart, roles } = lookAtVersions(before, wanted, found, { ...watch, verifyMs: updateVerifyMs });
    await noteUpdate(id, before.restart, restart);
    followLogs(roles.observed, restart);
    const seen = { id, wanted: roles.wanted, observed: roles.observed };
    reports.looked(seen, restart);
    const isPreparing = restart.update?.phase === 'preparing' && wanted.want === 'running' && isUpdating(wanted);
    if (isPreparing) await prepare(id, wanted, roles.other, watch);
    const step = planVersions(roles, restart, steadyMs());
    await noteStep(id, step, found, roles.wanted);
    if (step.kind === 'none' && !isPreparing && isAtRest(restart))
      causes.settled(id, restart.attempt.phase === 'failed');
    await carryOut(seen, step);
    const leftMs = unverifiedMs(restart, roles, steadyMs(), updateVerifyMs);
    if (leftMs !== undefined) parts.lookLater(id, leftMs);
  };
}

/** `true` if no step is under way, and no update. */
const isAtRest = ({ operation, update }: RestartState): boolean => operation === null && update?.phase !== 'verifying';

/** The specs of the copies that are there, and of those that are to be made. */
function specsOf(wanted: Wanted, found: readonly Found[]): string[] {
  const made = isMade(wanted)
    ? [wanted.spec, ...(wanted.update === undefined ? [] : [wanted.update.previous.spec])]
    : [];
  return [...made, ...found.map(({ spec }) => spec)];
}

/** The version that this copy was made from, as far as is known; else the newest. */
function versionOf({ spec }: Found, wanted: Declared): DesiredContainer {
  const { update, container } = wanted;
  return update !== undefined && update.previous.spec === spec ? update.previous.container : container;
}

/** The copies, marked if their limits are not those of their version. */
function withLimits(found: readonly Found[], wanted: Wanted, host: LimitingHost): readonly Found[] {
  if (!('container' in wanted)) return found;
  return found.map((each) => {
    const others = otherLimits(each, settingsOf(versionOf(each, wanted), host));
    return Object.keys(others).length > 0 ? { ...each, hasOtherLimits: true } : each;
  });
}

/** The check that the agent itself makes of this copy; `undefined` if it makes none. */
function checkOf(copy: Found, wanted: Wanted): HealthCheck | undefined {
  if (wanted.want !== 'running') return undefined;
  const { health } = policyOf(versionOf(copy, wanted));
  return health === null || health.command !== undefined ? undefined : health;
}

/** The means that steps are carried out with. */
interface StepParts {
  readonly executor: Executor;
  readonly causes: Pick<Causes, 'of'>;
  /** `undefined` if tracing is off. */
  readonly tracer?: Tracer | undefined;
  readonly restartStore: Pick<RestartStore, 'of' | 'set'>;
  readonly backoff: BackoffBounds;
  readonly steadyMs: () => number;
  readonly metrics: Pick<Metrics, 'step' | 'restart'>;
  readonly log: Log;
  /** Reconciles the container again after so long. */
  readonly lookLater: (id: ContainerId, ms: number) => void;
  /** A long step has begun. */
  readonly onBegun: (seen: Seen) => void;
  /** A step has ended. */
  readonly onEnded: (id: ContainerId, outcome: Outcome) => void;
}

/** A step from its beginning on: the request that it is for, and its span. */
interface Begun {
  readonly step: Step;
  readonly cause: Cause | undefined;
  readonly span: Span | undefined;
}

/**
 * Carries out the step that was planned for a container, and keeps its outcome in the restart
 * state. Short steps end within the turn; long ones go on beside the queue, and the container is
 * reconciled again when they end.
 */
export function createCarryOut(parts: StepParts): (seen: Seen, step: Step) => Promise<void> {
  const { executor, restartStore, backoff, steadyMs, causes, tracer, metrics, log } = parts;

  const begun = (id: ContainerId, step: Step): Begun => {
    const cause = causes.of(id);
    const attributes = { 'longshore.container': id };
    return { step, cause, span: tracer?.below(cause?.trace, { name: step.kind, kind: 'internal', attributes }) };
  };

  const note = (id: ContainerId, { step, cause, span }: Begun, outcome: Outcome): void => {
    metrics.step(step.kind, outcome.kind);
    if (step.kind === 'start' && step.again && outcome.kind === 'done') metrics.restart();
    const why = 'why' in outcome ? { reason: outcome.why.reason, message: outcome.why.message } : {};
    const detail = 'detail' in outcome ? { detail: outcome.detail.slice(0, engineDetailChars) } : {};
    log.info('step_taken', {
      container: id,
      step: step.kind,
      result: outcome.kind,
      ...why,
      ...detail,
      ...cause?.fields,
    });
    const attributes = { 'longshore.result': outcome.kind, 'longshore.reason': why.reason };
    span?.end({ attributes, isError: 'why' in outcome || outcome.kind === 'outage' });
  };

  const finish = (id: ContainerId, work: Begun, outcome: Outcome): void => {
    const { step } = work;
    note(id, work, outcome);
    restartStore.set(id, settle(restartStore.of(id), step, outcome, steadyMs(), backoff));
    parts.onEnded(id, outcome);
  };

  const begin = (seen: Seen, step: LongStep): void => {
    const { id } = seen;
    const tenant = tenantOf(seen);
    if (tenant === undefined) return;
    const operation = operationOf(step, restartStore.of(id).generation);
    restartStore.set(id, settle(restartStore.of(id), step, { kind: 'begun', operation }, steadyMs(), backoff));
    const work = begun(id, step);
    parts.onBegun(seen);
    const container = 'container' in seen.wanted ? seen.wanted.container : undefined;
    const ended = executor.long(step, { tenant, id }, container).catch((error: unknown): Outcome => {
      log.error('step_failed', { container: id, step: step.kind, error, ...work.cause?.fields });
      return { kind: 'outage' };
    });
    void ended.then((outcome) => end(id, { ...work, step }, operation, outcome));
  };

  const end = (
    id: ContainerId,
    work: Begun & { readonly step: LongStep },
    operation: Operation,
    outcome: Outcome,
  ): void => {
    const { step, span } = work;
    // Cancelled meanwhile, or forgotten with its container.
    if (restartStore.of(id).operation !== operation) {
      span?.end();
      return;
    }
    note(id, work, outcome);
    restartStore.set(id, endOperation(restartStore.of(id), step, outcome, steadyMs(), backoff));
    parts.onEnded(id, outcome);
  };

  return async (seen, step) => {
    const { id, wanted } = seen;
    switch (step.kind) {
      case 'none':
        return;
      case 'wait':
        parts.lookLater(id, Math.max(0, step.untilMs - steadyMs()));
        return;
      case 'fail':
        finish(id, begun(id, step), { kind: 'failed', why: step.why });
        return;
      case 'cancel_pull':
        executor.cancelPull(id);
        finish(id, begun(id, step), { kind: 'done' });
        return;
      case 'pull':
      case 'stop':
      case 'drain':
        begin(seen, step);
        return;
      case 'create':
      case 'start':
      case 'start_sandbox':
      case 'unpause':
      case 'limit':
      case 'remove': {
        const work = begun(id, step);
        finish(id, work, await executor.short(step, 'container' in wanted ? wanted.container : undefined));
        return;
      }
    }
  };
}

const tenantOf = ({ observed, wanted }: Seen) =>
  observed.kind === 'present' ? observed.found.tenant : 'container' in wanted ? wanted.container.tenant : undefined;

function operationOf(step: LongStep, generation: number): Operation {
  switch (step.kind) {
    case 'pull':
      return { kind: 'pull', generation, reference: step.reference };
    case 'stop':
      return { kind: 'stop', generation, dockerId: step.dockerId };
    case 'drain':
      return { kind: 'drain', generation, dockerId: step.dockerId };
  }
}
