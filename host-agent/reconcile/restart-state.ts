/**
 * What the agent remembers of one container between looks at it: what failed, how often, and when
 * to try again. Pure; the part in `Lasting` is kept on disk, so that a restart of the agent does
 * not forgive a crash loop.
 *
 * `nowMs` and every time here are of a clock that never steps (lib/clock.ts, `steadyTime`): a wall
 * clock that is set back must neither end a wait nor make it longer.
 */
import { backoffMs, type BackoffBounds } from '../../lib/backoff.ts';
import { limits } from '../../schemas/limits.ts';
import type { RunId } from './observed.ts';
import type { Wanted } from '../workload/wanted.ts';
import type { Operation, Outcome, Step, Why } from './step.ts';

export type Attempt =
  | { readonly phase: 'clear' }
  | { readonly phase: 'waiting'; readonly untilMs: number }
  /** Not tried again before a new generation. */
  | { readonly phase: 'failed' };

export interface Lasting {
  readonly generation: number;
  readonly want: Wanted['want'];
  readonly attempt: Attempt;
  readonly why: Why | null;
  /** In a row; drives the back-off. */
  readonly failures: number;
  readonly restarts: number;
  /** The run whose end is accounted for: as a crash, or as a stop that was asked for. */
  readonly countedRun: RunId | null;
  /** A start was asked for, and the image's policy is to look for a newer one first. */
  readonly pullDue: boolean;
}

export interface RestartState extends Lasting {
  readonly image: { readonly reference: string; readonly id: string } | null;
  /** The engine's container whose log lines are safe elsewhere. */
  readonly drained: string | null;
  /** When the agent last asked the engine to start it. */
  readonly startedAtMs: number | null;
  /** When it was seen to run, once in each time that the engine is watched without a break. */
  readonly seenUpAtMs: number | null;
  /** The engine's container that can never start again, and is to be made once more. */
  readonly remake: string | null;
  /**
   * The engine's container that has written more than it may: it is removed, and made again after a
   * back-off.
   */
  readonly evicted: { readonly dockerId: string; readonly why: Why } | null;
  readonly operation: Operation | null;
}

export const blank: RestartState = {
  generation: -1,
  want: 'untouched',
  attempt: { phase: 'clear' },
  why: null,
  failures: 0,
  restarts: 0,
  countedRun: null,
  pullDue: false,
  image: null,
  drained: null,
  startedAtMs: null,
  seenUpAtMs: null,
  remake: null,
  evicted: null,
  operation: null,
};

export const lastingOf = (restart: RestartState): Lasting => {
  const { generation, want, attempt, why, failures, restarts, countedRun, pullDue } = restart;
  return { generation, want, attempt, why, failures, restarts, countedRun, pullDue };
};

export const restartBackoff: BackoffBounds = { minMs: limits.restartBackoffMinMs, maxMs: limits.restartBackoffMaxMs };

/** One more failure in a row: the next attempt waits for the back-off. */
export const failed = (restart: RestartState, why: Why, nowMs: number, bounds: BackoffBounds): RestartState => ({
  ...restart,
  failures: restart.failures + 1,
  why,
  attempt: { phase: 'waiting', untilMs: nowMs + backoffMs(restart.failures, bounds) },
});

/**
 * What is remembered of a step that was carried out, or of long work that ended (then `operation`
 * is over).
 */
export function settle(
  restart: RestartState,
  step: Step,
  outcome: Outcome,
  nowMs: number,
  bounds: BackoffBounds,
): RestartState {
  switch (outcome.kind) {
    case 'begun':
      return { ...restart, operation: outcome.operation };
    case 'outage':
      // The engine may have started it all the same.
      return step.kind === 'start' ? { ...restart, startedAtMs: nowMs } : restart;
    case 'changed':
      return restart;
    case 'retry': {
      const { fault } = outcome;
      const image = fault === 'image_gone' ? null : restart.image;
      const remake = fault === 'remake' && step.kind === 'start' ? step.dockerId : restart.remake;
      const isOfHost = fault === 'host' && restart.failures + 1 >= limits.hostFaultTries;
      const why: Why = isOfHost ? { ...outcome.why, reason: 'host_fault' } : outcome.why;
      return { ...failed(restart, why, nowMs, bounds), image, remake };
    }
    case 'failed':
      return { ...restart, why: outcome.why, attempt: { phase: 'failed' } };
    case 'done':
      if (step.kind === 'remove' && step.dockerId === restart.evicted?.dockerId) {
        return evictionDone(restart, restart.evicted.why, nowMs, bounds);
      }
      return done(restart, step, outcome.imageId, nowMs);
  }
}

/**
 * A container that has written too much, up or down, unless it goes anyway or is known to have. It
 * does not wait for the end of a back-off, or for a new generation.
 */
export const evict = (restart: RestartState, dockerId: string, message: string): RestartState =>
  (restart.want !== 'running' && restart.want !== 'stopped') || restart.evicted?.dockerId === dockerId
    ? restart
    : {
        ...restart,
        attempt: { phase: 'clear' },
        evicted: { dockerId, why: { reason: 'disk_limit', message, exitCode: null } },
      };

/**
 * It is gone, with what it wrote. What is to run is made again after a back-off; what is stopped
 * only says why.
 */
export function evictionDone(restart: RestartState, why: Why, nowMs: number, bounds: BackoffBounds): RestartState {
  const after = { ...restart, evicted: null };
  return restart.want === 'running'
    ? failed(after, why, nowMs, bounds)
    : { ...after, attempt: { phase: 'clear' }, why };
}

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
        ...restart,
        why: null,
        attempt: { phase: 'clear' },
        restarts: restart.restarts + (step.again ? 1 : 0),
        drained: null,
        startedAtMs: nowMs,
      };
    case 'drain':
      return { ...restart, drained: step.dockerId };
    case 'stop':
    case 'remove':
    case 'unpause':
      return { ...restart, attempt: { phase: 'clear' } };
    case 'cancel_pull':
      return { ...restart, operation: null };
    case 'none':
    case 'wait':
    case 'fail':
      return restart;
  }
}

/**
 * Long work ended: forget it, and take in its outcome unless a newer generation has made it void.
 */
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
