/**
 * The update of a container in place (ADR 35): its new version is made beside the old one, which
 * runs on; then they are swapped, and the new one must stay up. If it does not, the old one starts
 * again. The host decides all of this alone, and reports each phase to the owner. Both copies stay
 * on the engine until the owner has acknowledged the end of the update. Pure.
 */
import { isDeepStrictEqual } from 'node:util';
import type { UpdatePhase } from '../../schemas/api/container.ts';
import { policyOf } from '../../schemas/api/policy.ts';
import { limits } from '../../schemas/limits.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import type { Declared, Updating, Wanted } from '../desired/wanted.ts';
import { observedFrom, type Found, type Observed } from '../docker/observed.ts';
import { afterLook, endOf, upMsOf, type Look } from './restart/look.ts';
import { blank, withoutGone, type RestartState, type UpdateState } from './restart/restart-state.ts';
import { plan, stopOf } from './plan.ts';
import { isGivenUp, unhealthyWhy, type Step } from './step.ts';

/** The copies of one container, by their purpose. */
export interface Roles {
  /** The version that runs, or should. */
  readonly wanted: Wanted;
  /** Its copy, and those that should not exist. */
  readonly observed: Observed;
  /** The copy of the other version. */
  readonly other: Found | undefined;
  /** `observed` is the copy of an earlier update, which runs until this one's version is made. */
  readonly isInterim?: true;
}

/** The state of the runs of its copies. */
type Runs = Pick<RestartState, 'update' | 'stopped' | 'ending'>;

/** In these phases the old version is the one that runs. */
const isOldUp = (phase: UpdatePhase): boolean => phase === 'preparing' || phase === 'rolled_back';

export function rolesOf(wanted: Wanted, found: readonly Found[], restart: Runs): Roles {
  const { update } = restart;
  if (!isUpdating(wanted) || update === null) {
    return { wanted, observed: observedFrom(found, 'spec' in wanted ? wanted.spec : undefined), other: undefined };
  }
  const { update: ofWanted, ...next } = wanted;
  const previous: Declared = { ...next, ...ofWanted.previous };
  const [active, beside] = isOldUp(update.phase) ? [previous, next] : [next, previous];
  const other = found.find((each) => isCopyOf(beside, each));
  const interim = update.phase === 'preparing' ? interimOf(active, beside, found, restart) : undefined;
  if (interim !== undefined) {
    const extra = found.filter((each) => each !== interim && each !== other && !isCopyOf(active, each));
    return { wanted: active, observed: { kind: 'present', found: interim, extra }, other, isInterim: true };
  }
  return {
    wanted: active,
    observed: observedFrom(
      found.filter((each) => each !== other),
      active.spec,
    ),
    other,
  };
}

export const isUpdating = (wanted: Wanted): wanted is Declared & Updating => 'update' in wanted;

const isCopyOf = ({ container, spec }: Declared, found: Found): boolean =>
  found.placement === container.placement && found.spec === spec;

/**
 * The copy of an unfinished update that another one has replaced: a running copy of the first runs
 * on, until it ends or the second is made. The end of a job, or of a container that runs once, is
 * the end of the container.
 */
function interimOf(active: Declared, beside: Declared, found: readonly Found[], restart: Runs): Found | undefined {
  const up = found.filter(({ state }) => state.phase === 'running');
  if (up.some((each) => isCopyOf(active, each))) return undefined;
  const policy = policyOf(active.container);
  const isOver = ({ state }: Found): boolean =>
    state.phase === 'exited' && (runsOnce(active) || endOf(restart, state.run, state.exit, policy) !== undefined);
  return [...up, ...found.filter(isOver)].find(
    (each) => each.placement === active.container.placement && !isCopyOf(beside, each) && !isCopyOf(active, each),
  );
}

const runsOnce = ({ container }: Declared): boolean => policyOf(container).restart === 'never';

/** The new version while it is made: like a copy for a move, it is not started. */
export function preparationOf({ update: _, ...next }: Declared & Updating): Declared {
  return { ...next, want: 'prepared' };
}

/** The inputs that all observations share: the time, and since when the engine was watched. */
export type Watch = Omit<Look, 'wanted' | 'observed'>;

/**
 * Updates the restart state after an observation of all copies.
 * @param before the restart states of the running copy, and of the new version while it is made
 * @param verifyMs milliseconds that the new version must stay up
 * @returns `restart`: the state of the running copy, with the phase that the update has reached;
 * `roles`: the purpose of each copy
 */
export function lookAtVersions(
  before: { readonly restart: RestartState; readonly preparation: RestartState },
  wanted: Wanted,
  found: readonly Found[],
  { verifyMs, ...watch }: Watch & { readonly verifyMs: number },
): { readonly restart: RestartState; readonly roles: Roles } {
  const restart = withoutGone(begun(before.restart, wanted), found);
  const roles = rolesOf(wanted, found, restart);
  const looked = afterLook(restart, { ...roles, ...watch });
  if (!isUpdating(wanted) || wanted.want !== 'running') return { restart: looked, roles };
  const isKnown = before.restart.update?.since === looked.update?.since;
  const preparation = isKnown ? before.preparation : blank;
  const moved = advance(looked, { roles, next: wanted.container, preparation, nowMs: watch.nowMs, verifyMs });
  if (moved.update?.phase === looked.update?.phase) return { restart: moved, roles };
  // Another copy is the running one now: its observation counts before the next step.
  const changed = rolesOf(wanted, found, moved);
  return { restart: afterLook(moved, { ...changed, ...watch }), roles: changed };
}

/** Takes in that an update has begun, or that its owner has acknowledged its end. */
export function begun(restart: RestartState, wanted: Wanted): RestartState {
  // An unknown goal ends no update.
  if (!('container' in wanted)) return restart;
  if (!isUpdating(wanted)) return restart.update === null ? restart : { ...restart, update: null };
  const { since, previous } = wanted.update;
  if (restart.update?.since === since) return restart;
  const phase = previous.spec === wanted.spec ? 'done' : 'preparing';
  return { ...restart, image: null, update: { since, phase, why: null } };
}

export interface Progress {
  readonly roles: Roles;
  /** The new version. */
  readonly next: DesiredContainer;
  /** The restart state of the new version while it is made. */
  readonly preparation: RestartState;
  readonly nowMs: number;
  /** Milliseconds that the new version must stay up. */
  readonly verifyMs: number;
}

/** The restart state with the next phase, if it is due. */
export function advance(restart: RestartState, progress: Progress): RestartState {
  const { update } = restart;
  switch (update?.phase) {
    case 'preparing':
      return afterPreparing(restart, update, progress);
    case 'verifying':
      return afterVerifying(restart, update, progress);
    default:
      return restart;
  }
}

function afterPreparing(
  restart: RestartState,
  update: UpdateState,
  { roles, next, preparation }: Progress,
): RestartState {
  const { attempt, failures, why, operation, image } = preparation;
  if (isUnmoved(roles, next, image))
    return { ...restart, update: { ...update, phase: 'rolled_back', why: null, unmoved: true } };
  // Only a start runs it again, also in another version: its owner is about to order one.
  if (restart.attempt.phase === 'ended') return restart;
  if (isGivenUp(attempt) || failures >= limits.updateTries) {
    // The old version may not run a second time: this run is the last.
    if (roles.isInterim && 'container' in roles.wanted && runsOnce(roles.wanted)) return restart;
    return { ...restart, update: { ...update, phase: 'rolled_back', why } };
  }
  const isMade = roles.other !== undefined && operation === null;
  // If the old version is not here, waiting gains nothing.
  if (!isMade && roles.observed.kind === 'present') return restart;
  return {
    ...afresh(restart),
    image: isMade ? image : null,
    update: { ...update, phase: 'verifying' },
  };
}

/**
 * `true` if the version only resolves its tag again, is the previous one in all else, and the tag
 * names the image of the running copy.
 */
function isUnmoved({ wanted, observed, isInterim }: Roles, next: DesiredContainer, image: RestartState['image']) {
  if (!('container' in wanted) || observed.kind === 'absent' || isInterim === true) return false;
  const { container: before } = wanted;
  if (next.repull === undefined || next.repull === before.repull || image === null) return false;
  if (observed.found.imageId !== image.id || observed.found.state.phase !== 'running') return false;
  const { repull: _, update: __, ...one } = next;
  const { repull: ___, update: ____, ...other } = before;
  return isDeepStrictEqual(one, other);
}

function afterVerifying(
  restart: RestartState,
  update: UpdateState,
  { roles, nowMs, verifyMs }: Progress,
): RestartState {
  const { attempt, failures, why } = restart;
  const { observed, wanted } = roles;
  const state = observed.kind === 'present' ? observed.found.state : undefined;
  const unhealthy = state?.phase === 'running' && state.health === 'unhealthy' ? unhealthyWhy(state) : undefined;
  if (attempt.phase === 'ended' && why?.reason === 'completed') return withPhase(restart, update, 'done');
  if (isGivenUp(attempt) || failures >= limits.updateEnds || unhealthy !== undefined) {
    // The run of the old version is over, and it may have no second one.
    if ('container' in wanted && runsOnce(wanted)) return withPhase(restart, update, 'done');
    return {
      ...afresh(restart),
      countedRun: roles.other?.state.phase === 'exited' ? roles.other.state.run : null,
      update: { ...update, phase: 'rolled_back', why: unhealthy ?? why },
    };
  }
  const isVerified =
    state?.phase === 'running' && state.health !== 'starting' && unverifiedMs(restart, roles, nowMs, verifyMs) === 0;
  return isVerified ? withPhase(restart, update, 'done') : restart;
}

const withPhase = (restart: RestartState, update: UpdateState, phase: UpdatePhase): RestartState => ({
  ...restart,
  update: { ...update, phase },
});

/** Another version takes over: the state of the previous one does not apply to it. */
const afresh = ({ generation, want, start, operation, update, stopped }: RestartState): RestartState => ({
  ...blank,
  generation,
  want,
  start,
  operation,
  update,
  stopped,
});

/**
 * Milliseconds that the new version's run must still last, whatever its health; `undefined` if no
 * such run is to be verified.
 */
export function unverifiedMs(
  restart: RestartState,
  { observed }: Roles,
  nowMs: number,
  verifyMs: number,
): number | undefined {
  if (restart.update?.phase !== 'verifying' || observed.kind === 'absent') return undefined;
  const { state } = observed.found;
  if (state.phase !== 'running') return undefined;
  return Math.max(0, verifyMs - upMsOf(nowMs - state.startedAtMs, restart, nowMs));
}

/** The next step of the version that runs, or of the copies beside it. */
export function planVersions(roles: Roles, restart: RestartState, nowMs: number): Step {
  // A host that is cut off, fenced or asked to stop it stops this version, too.
  if (roles.isInterim && roles.wanted.want === 'running') return none;
  const first = restart.operation === null ? planOther(roles, restart) : undefined;
  return first ?? plan(roles.wanted, roles.observed, restart, nowMs);
}

const none: Step = { kind: 'none' };

/**
 * The step that the other version's copy needs before the one that runs: only one of them may be
 * up, and the last lines of the one that was come before those of its successor.
 */
export function planOther({ wanted, observed, other }: Roles, restart: RestartState): Step | undefined {
  const { update } = restart;
  if (other === undefined || update === null) return undefined;
  // The copy is being made. But a crash may have come between its start and the phase on the disk.
  if (update.phase === 'preparing' && wanted.want === 'running') return undefined;
  const { dockerId, state } = other;
  switch (state.phase) {
    case 'running':
      return stopOf(wanted, dockerId);
    case 'paused':
      return { kind: 'unpause', dockerId };
    case 'exited': {
      const isUp = observed.kind === 'present' && observed.found.state.phase === 'running';
      const isDue = wanted.want === 'running' && !isUp && restart.drainedBeside !== dockerId;
      return isDue ? { kind: 'drain', dockerId, isBeside: true } : undefined;
    }
    case 'created':
    case 'removing':
    case 'dead':
      return undefined;
  }
}
