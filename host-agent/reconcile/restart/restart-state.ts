/**
 * The restart state of one container: what failed, how often, and when to try again. Pure. The part
 * in `Lasting` is kept on disk, so that a restart of the agent does not forgive a crash loop.
 *
 * `nowMs` and every time here come from a clock that never steps (lib/time/clock.ts, `steadyTime`):
 * setting the wall clock must neither end a wait nor extend it.
 */
import { backoffMs, type BackoffBounds } from '../../../lib/time/backoff.ts';
import type { UpdatePhase } from '../../../schemas/api/container.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Found, RunId } from '../../docker/observed.ts';
import type { Wanted } from '../../desired/wanted.ts';
import { isOverDisk, type Operation, type Outcome, type Step, type Why } from '../step.ts';

export type Attempt =
  | { readonly phase: 'clear' }
  | { readonly phase: 'waiting'; readonly untilMs: number }
  /** No more attempts before a new generation. */
  | { readonly phase: 'failed' }
  /** It has run to its end, and its policy does not start it again: only a start does. */
  | { readonly phase: 'ended' };

/** The update of a container, as far as it has progressed on this host (ADR 35). */
export interface UpdateState {
  /** Names the update: the generation that it came with. */
  readonly since: number;
  readonly phase: UpdatePhase;
  /** The reason why it was rolled back. */
  readonly why: Why | null;
  /** With `rolled_back`: its tag names the image that runs, so there is nothing to replace. */
  readonly unmoved?: true;
}

export interface Ending {
  readonly run: RunId;
  readonly why: Why;
}

export interface Lasting {
  readonly generation: number;
  readonly want: Wanted['want'];
  /** The generation of the newest start that was taken in; `null` if the owner gave none. */
  readonly start: number | null;
  readonly attempt: Attempt;
  readonly why: Why | null;
  /** Failures in a row; they set the back-off. */
  readonly failures: number;
  readonly restarts: number;
  /** The run whose end has been counted, as a crash or as a requested stop. */
  readonly countedRun: RunId | null;
  /** The run that the agent ends, to start the container again; and why. */
  readonly ending: Ending | null;
  /**
   * Runs that the agent has stopped, or is stopping, of copies that are still there: their ends
   * prove nothing about the program.
   */
  readonly stopped: readonly RunId[];
  /**
   * `true` if a run of it has begun, or may have: a container that may run once may not start
   * again.
   */
  readonly hasBegun: boolean;
  /** A start was requested, and the pull policy wants a newer image first. */
  readonly pullDue: boolean;
  readonly update: UpdateState | null;
}

/** The result of the last disk measurement of one of the engine's containers. */
export interface DiskVerdict {
  readonly dockerId: string;
  /** The reason why it must stop; `null` if it is within its limit again. */
  readonly why: Why | null;
}

export interface RestartState extends Lasting {
  readonly image: { readonly reference: string; readonly id: string } | null;
  /** The engine's container whose log lines are all safe. */
  readonly drained: string | null;
  /** The same for the copy that an update has stopped. */
  readonly drainedBeside: string | null;
  /** The time at which the agent last asked the engine to start it. */
  readonly startedAtMs: number | null;
  /** The time at which the agent saw it run, noted once for each unbroken watch of the engine. */
  readonly seenUpAtMs: number | null;
  /** The engine's container whose start made `hasBegun` true. */
  readonly firstStart: string | null;
  /** The engine's container that can never start again; the agent makes another. */
  readonly remake: string | null;
  /** The measurement that is not taken in yet. */
  readonly disk: DiskVerdict | null;
  readonly operation: Operation | null;
}

export const blank: RestartState = {
  generation: -1,
  want: 'ignored',
  start: null,
  attempt: { phase: 'clear' },
  why: null,
  failures: 0,
  restarts: 0,
  countedRun: null,
  ending: null,
  stopped: [],
  hasBegun: false,
  pullDue: false,
  update: null,
  image: null,
  drained: null,
  drainedBeside: null,
  startedAtMs: null,
  seenUpAtMs: null,
  firstStart: null,
  remake: null,
  disk: null,
  operation: null,
};

export const lastingOf = (restart: RestartState): Lasting => {
  const { generation, want, attempt, why, failures, restarts, countedRun, ending, pullDue, update } = restart;
  const { start, stopped, hasBegun } = restart;
  return {
    ...{ generation, want, start, attempt, why, failures, restarts, countedRun, ending },
    ...{ stopped, hasBegun, pullDue, update },
  };
};

/** Adds the run that the step stops, or begins. To be written to disk before the step. */
export function withStep(restart: RestartState, step: Step, found: readonly Found[]): RestartState {
  if (step.kind === 'start' && !restart.hasBegun) return { ...restart, hasBegun: true, firstStart: step.dockerId };
  if (step.kind !== 'stop') return restart;
  const state = found.find(({ dockerId }) => dockerId === step.dockerId)?.state;
  if (state?.phase !== 'running' || restart.stopped.includes(state.run)) return restart;
  return { ...restart, stopped: [...restart.stopped, state.run] };
}

/** Removes the runs of copies that are gone. */
export function withoutGone(restart: RestartState, found: readonly Found[]): RestartState {
  const runs = new Set(found.flatMap(({ state }) => ('run' in state ? [state.run] : [])));
  const stopped = restart.stopped.filter((run) => runs.has(run));
  return stopped.length === restart.stopped.length ? restart : { ...restart, stopped };
}

export const restartBackoff: BackoffBounds = { minMs: limits.restartBackoffMinMs, maxMs: limits.restartBackoffMaxMs };

/** One more failure in a row: the next attempt waits for the back-off. */
export const failed = (restart: RestartState, why: Why, nowMs: number, bounds: BackoffBounds): RestartState => ({
  ...restart,
  failures: restart.failures + 1,
  why,
  attempt: { phase: 'waiting', untilMs: nowMs + backoffMs(restart.failures, bounds) },
});

/** The restart state after a step, or after the end of long work (then `operation` is over). */
export function settle(
  before: RestartState,
  step: Step,
  outcome: Outcome,
  nowMs: number,
  bounds: BackoffBounds,
): RestartState {
  const restart = hasNotStarted(step, outcome) ? { ...before, hasBegun: false } : before;
  switch (outcome.kind) {
    case 'begun':
      return { ...restart, operation: outcome.operation };
    case 'outage':
      // The engine may have started the container all the same.
      return step.kind === 'start' ? { ...undrained(restart, step.dockerId), startedAtMs: nowMs } : restart;
    case 'changed':
      return restart;
    case 'retry': {
      const { fault } = outcome;
      const image = fault === 'image_gone' ? null : restart.image;
      const remake = fault === 'remake' && step.kind === 'start' ? step.dockerId : restart.remake;
      const isOfHost = fault === 'host' && restart.failures + 1 >= limits.hostFaultTries;
      const why: Why = isOfHost ? { ...outcome.why, reason: 'host_fault' } : outcome.why;
      // It runs on, and has not failed.
      if (step.kind === 'limit') return { ...restart, attempt: { phase: 'waiting', untilMs: nowMs + bounds.maxMs } };
      // A copy beside the one that has run to its end could not be cleared.
      if (restart.attempt.phase === 'ended') return { ...restart, image, remake };
      const { pauseMs = 0 } = outcome;
      const patience = pauseMs > bounds.minMs ? { minMs: pauseMs, maxMs: limits.pullLimitedMaxMs } : bounds;
      return { ...failed(restart, why, nowMs, patience), image, remake };
    }
    case 'failed':
      return restart.attempt.phase === 'ended'
        ? restart
        : { ...restart, why: outcome.why, attempt: { phase: 'failed' } };
    case 'done':
      return done(restart, step, outcome.imageId, nowMs);
  }
}

/** This copy has started, or may have: it writes lines again. */
const undrained = (restart: RestartState, dockerId: string): RestartState => ({
  ...restart,
  drained: null,
  drainedBeside: restart.drainedBeside === dockerId ? null : restart.drainedBeside,
});

const hasNotStarted = ({ kind }: Step, { kind: outcome }: Outcome): boolean =>
  kind === 'start' && outcome !== 'done' && outcome !== 'outage';

/**
 * Marks the copy that has written too much. Returns the same state if it should not run, or is
 * marked.
 */
export const overDisk = (restart: RestartState, dockerId: string, message: string): RestartState =>
  restart.want !== 'running' ||
  isOverDisk(restart) ||
  (restart.disk?.dockerId === dockerId && restart.disk.why !== null)
    ? restart
    : { ...restart, disk: { dockerId, why: { reason: 'disk_limit', message, exitCode: null } } };

/** Marks the copy that is within its limit again. Returns the same state if it was never over. */
export const withinDisk = (restart: RestartState, dockerId: string): RestartState =>
  isOverDisk(restart) && restart.attempt.phase === 'failed' ? { ...restart, disk: { dockerId, why: null } } : restart;

function done(restart: RestartState, step: Step, imageId: string | undefined, nowMs: number): RestartState {
  switch (step.kind) {
    case 'pull':
      return {
        ...restart,
        image: imageId === undefined ? null : { reference: step.reference, id: imageId },
        pullDue: false,
        failures: 0,
        why: null,
        attempt: { phase: 'clear' },
      };
    case 'create':
      return { ...restart, why: null, attempt: { phase: 'clear' } };
    case 'start':
      return {
        ...undrained(restart, step.dockerId),
        why: null,
        attempt: { phase: 'clear' },
        restarts: restart.restarts + (step.again ? 1 : 0),
        startedAtMs: nowMs,
      };
    case 'drain':
      return step.isBeside === true
        ? { ...restart, drainedBeside: step.dockerId }
        : { ...restart, drained: step.dockerId };
    case 'stop':
    case 'remove':
    case 'start_sandbox':
    case 'unpause':
    case 'limit':
      // The stop of a copy that has written too much is no reason to start it, nor is that of
      // another copy than the one that has run to its end.
      return isOverDisk(restart) || restart.attempt.phase === 'ended'
        ? restart
        : { ...restart, attempt: { phase: 'clear' } };
    case 'cancel_pull':
      return { ...restart, operation: null };
    case 'none':
    case 'wait':
    case 'fail':
      return restart;
  }
}

/** Ends long work, and takes in its outcome unless a newer generation has made a failure void. */
export function endOperation(
  restart: RestartState,
  step: Step,
  outcome: Outcome,
  nowMs: number,
  bounds: BackoffBounds,
): RestartState {
  const idle = { ...restart, operation: null };
  const isVoid = restart.operation !== null && restart.operation.generation !== restart.generation;
  const isFailure = outcome.kind === 'retry' || outcome.kind === 'failed';
  return isVoid && isFailure ? idle : settle(idle, step, outcome, nowMs, bounds);
}
