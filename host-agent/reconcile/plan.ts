/**
 * The decision: the one next step, from the goal, the engine's state and the restart state. Pure
 * and complete: the reconciler asks again after every step and every event, and `none` means that
 * the container is as it should be.
 */
import type { PullPolicy } from '../../schemas/api/fields/container.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import type { RestartState } from './restart/restart-state.ts';
import type { Found, Observed } from '../docker/observed.ts';
import { isMade, type Declared, type Wanted } from '../desired/wanted.ts';
import { referenceOf } from '../spec/reference.ts';
import { isGivenUp, isOverDisk, type Step, type Why } from './step.ts';

/** The time between two checks of a removal that the engine itself carries out. */
const removalLookMs = 1000;

const none: Step = { kind: 'none' };

export function plan(wanted: Wanted, observed: Observed, restart: RestartState, nowMs: number): Step {
  if (wanted.want === 'ignored') return none;
  if (restart.operation !== null) {
    return restart.operation.kind === 'pull' && !isMade(wanted) ? { kind: 'cancel_pull' } : none;
  }
  const { attempt } = restart;
  if (attempt.phase === 'waiting' && nowMs < attempt.untilMs) return { kind: 'wait', untilMs: attempt.untilMs };
  if (observed.kind === 'present' && observed.extra[0] !== undefined)
    return clear(wanted, observed.extra[0], restart, nowMs);

  switch (wanted.want) {
    case 'running':
      if (isOverDisk(restart) && observed.kind === 'present') return planStopped(wanted, observed.found);
      if (isGivenUp(attempt)) return none;
      return observed.kind === 'absent'
        ? planMissing(wanted, restart)
        : planPresent(wanted, observed.found, restart, nowMs);
    case 'prepared':
      if (isGivenUp(attempt)) return none;
      return observed.kind === 'absent'
        ? planMissing(wanted, restart)
        : planPrepared(wanted, observed.found, restart, nowMs);
    case 'stopped':
      return observed.kind === 'absent' ? none : planStopped(wanted, observed.found);
    case 'removed':
    case 'nothing':
      return observed.kind === 'absent' ? none : clear(wanted, observed.found, restart, nowMs);
  }
}

/**
 * Stops a container by its policy. An orphan has none here; and a host that is cut off stops its
 * containers by its own settings, whose time its owner counts on.
 */
export function stopOf(wanted: Wanted, dockerId: string): Step {
  if (!('container' in wanted)) return { kind: 'stop', dockerId };
  const { policy, desired } = wanted.container;
  const isCutOff = wanted.want === 'stopped' && desired === 'running';
  if (policy === undefined || isCutOff) return { kind: 'stop', dockerId };
  return {
    kind: 'stop',
    dockerId,
    manner: { graceMs: policy.stop_grace_seconds * 1000, signal: policy.stop_signal },
  };
}

function planMissing({ container, admitted }: Declared, restart: RestartState): Step {
  if (!admitted) return fail('rejected', 'its cpu_limit and mem_limit do not fit on this host');
  const reference = referenceOf(container);
  switch (reference.kind) {
    case 'missing':
      return fail('image_missing', 'the container names no repository');
    case 'invalid':
      return fail('image_invalid', reference.message);
    case 'image': {
      const { image, pullDue } = restart;
      return image?.reference === reference.reference && !pullDue
        ? { kind: 'create', reference: reference.reference, imageId: image.id }
        : { kind: 'pull', reference: reference.reference, policy: policyToMake(container) };
    }
  }
}

/** Its tenant may have asked to resolve a tag again. */
const policyToMake = ({ repull, pull_policy }: DesiredContainer): PullPolicy =>
  repull === undefined ? pull_policy : 'always';

/**
 * The container is there and should run: unchanged if it was made for this spec and placement, else
 * made again.
 */
function planPresent(wanted: Declared, found: Found, restart: RestartState, nowMs: number): Step {
  const { container } = wanted;
  if (isOutdated(wanted, found)) return clear(wanted, found, restart, nowMs);
  const { dockerId, state, sandbox } = found;
  switch (state.phase) {
    case 'running':
      // Without its sandbox it has no network. It starts again when it is down.
      if (sandbox?.state === 'down' || restart.ending?.run === state.run) return stopOf(wanted, dockerId);
      return found.hasOtherLimits === true ? { kind: 'limit', dockerId } : none;
    case 'paused':
      return { kind: 'unpause', dockerId };
    case 'created':
    case 'exited': {
      if (restart.remake === dockerId) return clear(wanted, found, restart, nowMs);
      const reference = referenceOf(container);
      if (restart.pullDue && reference.kind === 'image') {
        return { kind: 'pull', reference: reference.reference, policy: container.pull_policy };
      }
      if (container.pull_policy === 'always' && restart.image !== null && restart.image.id !== found.imageId) {
        return clear(wanted, found, restart, nowMs);
      }
      if (sandbox?.state === 'down') return { kind: 'start_sandbox', dockerId: sandbox.dockerId };
      return { kind: 'start', dockerId, prepare: state.phase === 'created', again: restart.failures > 0 };
    }
    case 'removing':
    case 'dead':
      return clear(wanted, found, restart, nowMs);
  }
}

/** `true` if it was made for another version or placement, or cannot run again as it is. */
export const isOutdated = ({ container, spec }: Declared, found: Found): boolean =>
  found.placement !== container.placement || found.spec !== spec || found.sandbox?.state === 'gone';

/** The container should be there as declared, and not run. */
function planPrepared(wanted: Declared, found: Found, restart: RestartState, nowMs: number): Step {
  if (isOutdated(wanted, found)) return clear(wanted, found, restart, nowMs);
  const { phase } = found.state;
  const isLost = phase === 'removing' || phase === 'dead';
  return isLost ? clear(wanted, found, restart, nowMs) : planStopped(wanted, found);
}

function planStopped(wanted: Declared, { dockerId, state }: Found): Step {
  switch (state.phase) {
    case 'running':
      return stopOf(wanted, dockerId);
    case 'paused':
      // A frozen process gets no signal.
      return { kind: 'unpause', dockerId };
    case 'created':
    case 'exited':
    case 'removing':
    case 'dead':
      return none;
  }
}

/** Removes a container step by step: stop it, save its last log lines, remove it. */
function clear(wanted: Wanted, { dockerId, state }: Found, restart: RestartState, nowMs: number): Step {
  switch (state.phase) {
    case 'running':
      return stopOf(wanted, dockerId);
    case 'paused':
      return { kind: 'unpause', dockerId };
    case 'exited':
      return restart.drained === dockerId || restart.drainedBeside === dockerId
        ? { kind: 'remove', dockerId }
        : { kind: 'drain', dockerId };
    case 'created':
    case 'dead':
      return { kind: 'remove', dockerId };
    case 'removing':
      return { kind: 'wait', untilMs: nowMs + removalLookMs };
  }
}

const fail = (reason: Why['reason'], message: string): Step => ({
  kind: 'fail',
  why: { reason, message, exitCode: null },
});
