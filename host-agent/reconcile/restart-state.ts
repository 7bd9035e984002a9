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
import { startWords } from './failures.ts';
import type { Observed, RunId } from './observed.ts';
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

const generationOf = (wanted: Wanted): number => ('container' in wanted ? wanted.container.generation : -1);

export const restartBackoff: BackoffBounds = { minMs: limits.restartBackoffMinMs, maxMs: limits.restartBackoffMaxMs };

/**
 * Takes in what is wanted and what is seen: a new wish starts afresh, a run that ended is counted
 * once.
 *
 * A run that was neither seen nor started since `watchedSinceMs` ended while the agent or the
 * engine was away: most likely it went down with its engine, as at a reboot. That is no failure of
 * its own: it is started again at once, and its back-off stays as it was. The engine's times do not
 * tell: they are of a clock that may have been set.
 */
export function remember(
  before: RestartState,
  wanted: Wanted,
  observed: Observed,
  nowMs: number,
  bounds: BackoffBounds,
  watchedSinceMs: number,
): RestartState {
  const isLeft = before.evicted !== null && !isThere(observed, before.evicted.dockerId);
  const restart = isLeft ? evictionDone(before, before.evicted.why, nowMs, bounds) : before;
  const generation = generationOf(wanted);
  const state = observed.kind === 'present' ? observed.found.state : null;
  if (generation !== restart.generation || wanted.want !== restart.want) {
    const isUp = state?.phase === 'running' || state?.phase === 'paused';
    return {
      ...restart,
      generation,
      want: wanted.want,
      attempt: { phase: 'clear' },
      why: null,
      failures: isUp ? restart.failures : 0,
      restarts: isUp ? restart.restarts : 0,
      countedRun: state?.phase === 'exited' ? state.run : restart.countedRun,
      pullDue: wanted.want === 'running' && wanted.container.pull_policy === 'always' && !isUp,
    };
  }
  if (wanted.want !== 'running' || state === null) return restart;
  if (state.phase === 'running') {
    const upMs = atMost(nowMs - state.startedAtMs, restart, nowMs);
    const seen = isSince(restart.seenUpAtMs, watchedSinceMs) ? restart : { ...restart, seenUpAtMs: nowMs };
    return upMs >= limits.restartBackoffForgetMs && seen.failures > 0 ? { ...seen, failures: 0 } : seen;
  }
  if (state.phase !== 'exited' || state.run === restart.countedRun) return restart;
  // Its end was the agent's doing.
  if (observed.kind === 'present' && observed.found.dockerId === restart.evicted?.dockerId) return restart;
  const { exit, run } = state;
  // A start that failed never ran, and is known from its error.
  const isWatched = isSince(restart.seenUpAtMs, watchedSinceMs) || isSince(restart.startedAtMs, watchedSinceMs);
  if (exit.error === '' && !isWatched) {
    // A restart all the same; where there are failures, the start that follows is counted as one.
    const restarts = restart.failures > 0 ? restart.restarts : restart.restarts + 1;
    return { ...restart, restarts, countedRun: run };
  }
  const failures = atMost(exit.upMs, restart, nowMs) >= limits.restartBackoffForgetMs ? 0 : restart.failures;
  return { ...failed({ ...restart, failures }, explainExit(exit, failures + 1), nowMs, bounds), countedRun: run };
}

const isThere = (observed: Observed, dockerId: string): boolean =>
  observed.kind === 'present' && [observed.found, ...observed.extra].some((found) => found.dockerId === dockerId);

const isSince = (atMs: number | null, sinceMs: number): boolean => atMs !== null && atMs >= sinceMs;

/**
 * It has been up for no longer than since the agent started it, whatever the engine's clock says.
 */
const atMost = (upMs: number, { startedAtMs }: RestartState, nowMs: number): number =>
  startedAtMs === null ? upMs : Math.min(upMs, nowMs - startedAtMs);

function explainExit(exit: { exitCode: number; oomKilled: boolean; error: string }, failures: number): Why {
  const { exitCode, oomKilled, error } = exit;
  const code = `exited with code ${exitCode}`;
  if (oomKilled) return { reason: 'oom_killed', message: `out of memory: killed at its mem_limit, ${code}`, exitCode };
  if (error !== '') return { ...startWords(error), exitCode };
  if (failures < limits.crashLoopExits) return { reason: 'exited', message: code, exitCode };
  return { reason: 'crash_loop', message: `${code}, ${failures} times in a row`, exitCode };
}

const failed = (restart: RestartState, why: Why, nowMs: number, bounds: BackoffBounds): RestartState => ({
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
      const image = outcome.imageGone === true ? null : restart.image;
      const remake = outcome.remake === true && step.kind === 'start' ? step.dockerId : restart.remake;
      const isOfHost = outcome.ofHost === true && restart.failures + 1 >= limits.hostFaultTries;
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
function evictionDone(restart: RestartState, why: Why, nowMs: number, bounds: BackoffBounds): RestartState {
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
