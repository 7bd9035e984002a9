/**
 * The report of a container: its status in the words of the API, with the reason that explains it.
 * Pure.
 */
import { timestamp } from '../../lib/time/timestamp.ts';
import type { ContainerStatus, Observation } from '../../schemas/api/container.ts';
import type { Description } from '../link/reporter.ts';
import type { RestartState } from './restart/restart-state.ts';
import type { EngineState, Observed } from '../docker/observed.ts';
import type { Declared, Wanted } from '../desired/wanted.ts';
import { isOutdated } from './plan.ts';
import { limits } from '../../schemas/limits.ts';
import { unhealthyWhy, type Why } from './step.ts';

/** `undefined` for containers without a report: orphans, and ignored ones. */
export function describe(wanted: Wanted, observed: Observed, restart: RestartState): Description | undefined {
  if (!('container' in wanted)) return undefined;
  const state = observed.kind === 'present' ? observed.found.state : null;
  switch (wanted.want) {
    case 'running':
      return describeRunning(state, restart);
    case 'prepared':
      return describePrepared(wanted, observed, restart);
    case 'stopped':
      return describeStopped(upOf(observed) ?? state, restart);
    case 'removed':
      return { gone: state === null, observation: observation('removing', restart.why, {}) };
  }
}

/** A container is down when all of its copies are: an update may have left another one up. */
function upOf(observed: Observed): EngineState | undefined {
  const copies = observed.kind === 'present' ? [observed.found, ...observed.extra] : [];
  return copies.map(({ state }) => state).find(({ phase }) => phase === 'running' || phase === 'paused');
}

function describeRunning(state: EngineState | null, restart: RestartState): Description {
  const { attempt, operation, restarts } = restart;
  const { why } = restart;
  const base = { restart_count: restarts };
  const as = (status: ContainerStatus, reasoned: Why | null, more: Partial<Observation> = {}): Description => ({
    gone: false,
    observation: observation(status, reasoned, { ...base, ...more }),
  });

  if (operation?.kind === 'pull') return as('pulling', why);
  // An update stops the old copy, to start its successor.
  if (operation?.kind === 'stop') return as(restart.update === null ? 'stopping' : 'starting', why);
  if (state?.phase === 'running') return describeUp(state, as);
  switch (attempt.phase) {
    case 'failed':
      return { ...as('failed', why), gone: why?.reason === 'rejected' };
    case 'ended':
      return describeEnded(restart);
    case 'waiting':
      return as('backoff', why, { next_retry_at: timestamp(attempt.untilMs), failures: restart.failures });
    case 'clear':
      return as(state === null && restart.image === null ? 'pending' : 'starting', why);
  }
}

/** A clean end is no failure. */
const describeEnded = ({ why, restarts }: RestartState): Description => ({
  gone: false,
  ended: true,
  observation: observation(why?.reason === 'completed' ? 'stopped' : 'failed', why, { restart_count: restarts }),
});

/** `stopped` means that it can start at once: the copy is of this version and placement. */
function describePrepared(wanted: Declared, observed: Observed, restart: RestartState): Description {
  const found = observed.kind === 'present' ? observed.found : undefined;
  const state = upOf(observed) ?? found?.state ?? null;
  const isMade = found !== undefined && !isOutdated(wanted, found);
  const isReady = isMade && (state?.phase === 'created' || state?.phase === 'exited');
  if (isReady && restart.operation === null) return { gone: false, observation: observation('stopped', null, {}) };
  return state?.phase === 'running' ? describeStopped(state, restart) : describeRunning(state, restart);
}

function describeUp(
  state: Extract<EngineState, { phase: 'running' }>,
  as: (status: ContainerStatus, why: Why | null, more: Partial<Observation>) => Description,
): Description {
  const up = { started_at: timestamp(state.startedAtMs), addresses: [...state.addresses] };
  switch (state.health) {
    case 'starting':
      return as('starting', null, up);
    case 'unhealthy':
      return as('running', unhealthyWhy(state), up);
    case 'none':
    case 'healthy':
      return as('running', null, up);
  }
}

function describeStopped(state: EngineState | null, restart: RestartState): Description {
  const isDown = state === null || (state.phase !== 'running' && state.phase !== 'paused');
  if (isDown && restart.attempt.phase === 'ended') return describeEnded(restart);
  const exit_code = state?.phase === 'exited' ? state.exit.exitCode : null;
  // A stopped container needs no explanation.
  const shown = isDown ? null : restart.why;
  return { gone: false, observation: observation(isDown ? 'stopped' : 'stopping', shown, { exit_code }) };
}

/** An observation with the usual values, which `more` overrides. */
export const observation = (status: ContainerStatus, why: Why | null, more: Partial<Observation>): Observation => ({
  status,
  reason: why?.reason ?? null,
  message: why?.message.slice(0, limits.observationMessageChars) ?? null,
  exit_code: why?.exitCode ?? null,
  restart_count: 0,
  next_retry_at: null,
  started_at: null,
  addresses: [],
  ...(why?.login === undefined ? {} : { refused_login: why.login }),
  ...more,
});

/**
 * While the engine does not answer, the last observation stands; the message contains the time
 * since which it is old.
 */
export function describeAway(last: Description | undefined, sinceMs: number): Description {
  const message = `the container engine has not answered since ${timestamp(sinceMs)}`;
  if (last === undefined) {
    const why: Why = { reason: 'engine_unavailable', message, exitCode: null };
    return { gone: false, observation: observation('pending', why, {}) };
  }
  if (last.gone || last.observation.reason !== null) return last;
  return { ...last, observation: { ...last.observation, reason: 'engine_unavailable', message } };
}
