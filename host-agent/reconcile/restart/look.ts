/**
 * Updates the restart state of a container after an observation: a new goal starts afresh, and the
 * end of a run counts once. Pure.
 */
import type { BackoffBounds } from '../../../lib/time/backoff.ts';
import { limits } from '../../../schemas/limits.ts';
import { policyOf, type Policy } from '../../../schemas/api/policy.ts';
import { isMade, type Wanted } from '../../desired/wanted.ts';
import { startWords } from '../execute/failures.ts';
import type { EngineState, Exit, Found, Observed, RunId } from '../../docker/observed.ts';
import { failed, type RestartState } from './restart-state.ts';
import { isGivenUp, isOverDisk, unhealthyWhy, type Why } from '../step.ts';
import { minutes } from '../../../schemas/limits/units.ts';

/** A run that lasts this long ends the back-off of a container. */
export const restartBackoffForgetMs = 10 * minutes;

export interface Look {
  readonly wanted: Wanted;
  readonly observed: Observed;
  /** By a clock that never steps, as every time of the restart state. */
  readonly nowMs: number;
  /** The time since which the engine has been watched without a break. */
  readonly watchedSinceMs: number;
  readonly backoff: BackoffBounds;
}

export function afterLook(before: RestartState, look: Look): RestartState {
  const restart = afterStart(afterMeasurement(before, look), look.observed);
  const { wanted, observed } = look;
  if (generationOf(wanted) !== restart.generation || wanted.want !== restart.want) return afresh(restart, look);
  if (wanted.want !== 'running') return restart;
  const policy = policyOf(wanted.container);
  if (observed.kind === 'absent') return policy.restart === 'never' ? afterOnlyRun(restart) : restart;
  const { found } = observed;
  switch (found.state.phase) {
    case 'running':
      return afterEnding(seenUp(restart, found.state, look), found, found.state, policy);
    case 'exited':
      return seenDown(restart, found.state, { ...look, policy });
    case 'created':
    case 'paused':
    case 'removing':
    case 'dead':
      return restart;
  }
}

type StateOf<P extends EngineState['phase']> = Extract<EngineState, { phase: P }>;

const generationOf = (wanted: Wanted): number => ('container' in wanted ? wanted.container.generation : -1);

/** Takes in the disk measurement of the copy that should run. */
function afterMeasurement(before: RestartState, { wanted, observed }: Look): RestartState {
  const { disk } = before;
  if (disk === null) return before;
  const restart = { ...before, disk: null };
  if (wanted.want !== 'running' || observed.kind === 'absent' || observed.found.dockerId !== disk.dockerId)
    return restart;
  if (disk.why === null) return isOverDisk(restart) ? { ...restart, ...clear } : restart;
  const isLastRun = policyOf(wanted.container).restart === 'never';
  return { ...restart, attempt: { phase: isLastRun ? 'ended' : 'failed' }, why: disk.why };
}

/** Its first start got no answer, and the copy was only created: it has not begun. */
function afterStart(restart: RestartState, observed: Observed): RestartState {
  if (observed.kind === 'absent' || observed.found.dockerId !== restart.firstStart) return restart;
  return observed.found.state.phase === 'created' ? { ...restart, hasBegun: false } : restart;
}

/** Another generation, or another goal: earlier failures do not count. */
function afresh(restart: RestartState, { wanted, observed }: Look): RestartState {
  const state = observed.kind === 'present' ? observed.found.state : null;
  const isUp = state?.phase === 'running' || state?.phase === 'paused';
  const { attempt, why } = endKept(restart, wanted, state) ?? clear;
  const hasBegun = isUp || (restart.hasBegun && !isStart(restart, wanted));
  return {
    ...restart,
    generation: generationOf(wanted),
    want: wanted.want,
    start: wanted.want === 'running' ? (wanted.container.start ?? null) : restart.start,
    attempt,
    why,
    hasBegun,
    failures: isUp ? restart.failures : 0,
    restarts: isUp ? restart.restarts : 0,
    countedRun: state?.phase === 'exited' ? state.run : restart.countedRun,
    pullDue: isPullDue(restart, wanted, isUp),
  };
}

/**
 * `true` if it was started since. If owner or agent did not count starts: it is to run and was not,
 * as far as is known here, and the order is not the previous one.
 */
function isStart({ want, generation, start }: RestartState, wanted: Wanted): boolean {
  if (wanted.want !== 'running') return false;
  const { container } = wanted;
  if (start !== null && container.start !== undefined) return container.start > start;
  if (want === 'ignored' || container.generation === generation) return false;
  return container.start === undefined ? want !== 'running' : container.start > generation;
}

const clear: Pick<RestartState, 'attempt' | 'why'> = { attempt: { phase: 'clear' }, why: null };

/**
 * A container that has run to its end stays so until its tenant starts it. `undefined` if it has
 * not, or may run again.
 */
function endKept(
  restart: RestartState,
  wanted: Wanted,
  state: EngineState | null,
): Pick<RestartState, 'attempt' | 'why'> | undefined {
  if (wanted.want !== 'running' && wanted.want !== 'stopped') return undefined;
  const policy = policyOf(wanted.container);
  if (policy.restart === 'always' || isStart(restart, wanted)) return undefined;
  if (restart.attempt.phase === 'ended') return restart;
  // For example, after a host was cut off, or between the two copies of an update.
  if (policy.restart !== 'never' || wanted.want !== 'running' || state?.phase !== 'exited') return undefined;
  const why = endOf(restart, state.run, state.exit, policy);
  return why === undefined ? undefined : { attempt: { phase: 'ended' }, why };
}

/** A copy that was prepared is as new as its pull. */
function isPullDue({ want, pullDue, update }: RestartState, wanted: Wanted, isUp: boolean): boolean {
  // Each version was pulled when it was made.
  if (update !== null) return false;
  if (!isMade(wanted) || wanted.container.pull_policy !== 'always' || isUp) return false;
  return want !== 'prepared' || pullDue;
}

function seenUp(restart: RestartState, { startedAtMs }: StateOf<'running'>, look: Look): RestartState {
  const { nowMs, watchedSinceMs } = look;
  const isSeen = isSince(restart.seenUpAtMs, watchedSinceMs) && restart.hasBegun;
  const seen = isSeen ? restart : { ...restart, seenUpAtMs: nowMs, hasBegun: true };
  const isSteady = upMsOf(nowMs - startedAtMs, restart, nowMs) >= restartBackoffForgetMs;
  return isSteady && seen.failures > 0 ? { ...seen, failures: 0 } : seen;
}

/** Notes that this run must end, and the reason: then it starts again. */
function afterEnding(
  restart: RestartState,
  { sandbox }: Found,
  state: StateOf<'running'>,
  { health }: Policy,
): RestartState {
  if (restart.ending?.run === state.run) return restart;
  const why =
    sandbox?.state === 'down'
      ? networkLost
      : state.health === 'unhealthy' && health?.restart_unhealthy === true
        ? unhealthyWhy(state)
        : undefined;
  return why === undefined ? restart : { ...restart, why, ending: { run: state.run, why } };
}

const networkLost: Why = { reason: 'exited', message: 'its network on the host was lost', exitCode: null };

function seenDown(
  restart: RestartState,
  { run, exit }: StateOf<'exited'>,
  look: Look & { readonly policy: Policy },
): RestartState {
  if (run === restart.countedRun) return restart;
  // The agent ended it itself.
  if (isOverDisk(restart)) return { ...restart, countedRun: run };
  if (isStopOfAgent(restart, run) && look.policy.restart !== 'never') return restart;
  const end = endOf(restart, run, exit, look.policy);
  if (end !== undefined) return { ...restart, countedRun: run, attempt: { phase: 'ended' }, why: end };
  if (endedUnwatched(restart, exit, look)) {
    // After failures, the start that follows counts as the restart.
    const restarts = restart.failures > 0 ? restart.restarts : restart.restarts + 1;
    return { ...restart, restarts, countedRun: run };
  }
  const { nowMs, backoff } = look;
  const failures = upMsOf(exit.upMs, restart, nowMs) >= restartBackoffForgetMs ? 0 : restart.failures;
  const why = restart.ending?.run === run ? restart.ending.why : explainExit(exit, failures + 1);
  return { ...failed({ ...restart, failures }, why, nowMs, backoff), countedRun: run };
}

const atEnd = (restart: RestartState, why: Why): RestartState => ({ ...restart, attempt: { phase: 'ended' }, why });

/** A container that may run once has begun to, and is gone from the engine: somebody removed it. */
const afterOnlyRun = (restart: RestartState): RestartState =>
  restart.hasBegun && !isGivenUp(restart.attempt) ? atEnd(restart, removedOnce) : restart;

const startAgain = 'its policy "never" lets it run once: start it if it should run again';
/**
 * The exit code is not the program's own: an owner treats a job that has one as ended. A program
 * that is asked to stop may end by itself meanwhile: exit code 0 proves neither.
 */
const stoppedOnce = (exitCode: number): Why => ({
  reason: 'exited',
  message:
    exitCode === 0
      ? `ended with exit code 0 while its host stopped it, so nobody knows whether it was done; ${startAgain}`
      : `stopped before its end; ${startAgain}`,
  exitCode: null,
});
const removedOnce: Why = {
  reason: 'exited',
  message: `removed from its host by hand, so nobody knows whether it has ended; ${startAgain}`,
  exitCode: null,
};

/**
 * `true` if the agent stopped the run to run another copy, or none; not because the run was ill.
 */
const isStopOfAgent = ({ stopped, ending }: Pick<RestartState, 'stopped' | 'ending'>, run: RunId): boolean =>
  stopped.includes(run) && ending?.run !== run;

/** The reason why a run was the last; `undefined` if the container starts again. */
export function endOf(
  before: Pick<RestartState, 'stopped' | 'ending'>,
  run: RunId,
  exit: Exit,
  { restart }: Policy,
): Why | undefined {
  // A start that failed was no run.
  if (restart === 'always' || exit.error !== '') return undefined;
  if (isStopOfAgent(before, run)) return restart === 'never' ? stoppedOnce(exit.exitCode) : undefined;
  const { ending } = before;
  const isOwnEnd = ending?.run !== run;
  if (isOwnEnd && exit.exitCode === 0 && !exit.oomKilled) {
    return { reason: 'completed', message: 'ended with exit code 0', exitCode: 0 };
  }
  if (restart === 'on_failure') return undefined;
  return isOwnEnd ? explainExit(exit, 1) : ending.why;
}

/**
 * A run that was neither seen nor started since `watchedSinceMs` ended while the agent or the
 * engine was away: most likely it went down with its engine, as at a reboot. The container did not
 * fail; the agent starts it again at once and keeps its back-off. The engine's times do not decide
 * this: its clock may have been set. A start that failed never ran; its error shows that.
 */
const endedUnwatched = (restart: RestartState, exit: Exit, { watchedSinceMs }: Look): boolean =>
  exit.error === '' && !isSince(restart.seenUpAtMs, watchedSinceMs) && !isSince(restart.startedAtMs, watchedSinceMs);

const isSince = (atMs: number | null, sinceMs: number): boolean => atMs !== null && atMs >= sinceMs;

/** At most the time since the agent started it, whatever the engine's clock shows. */
export const upMsOf = (engineMs: number, { startedAtMs }: RestartState, nowMs: number): number =>
  startedAtMs === null ? engineMs : Math.min(engineMs, nowMs - startedAtMs);

function explainExit({ exitCode, oomKilled, error }: Exit, failures: number): Why {
  const code = `exited with code ${exitCode}`;
  if (oomKilled) {
    const what = exitCode === 137 ? 'killed' : 'a process of it was killed';
    return { reason: 'oom_killed', message: `out of memory: ${what} at its mem_limit, ${code}`, exitCode };
  }
  if (error !== '') return { ...startWords(error), exitCode };
  // Engines do not always notice that the kernel ended a process for its memory.
  const perhaps = exitCode === 137 ? ' (killed: perhaps out of memory, then raise mem_limit)' : '';
  if (failures < limits.loopEnds) return { reason: 'exited', message: `${code}${perhaps}`, exitCode };
  return { reason: 'crash_loop', message: `${code}, ${failures} times in a row${perhaps}`, exitCode };
}
