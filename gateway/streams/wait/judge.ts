/** Decides from the status whether a wait has its answer. Pure. */
import { isLooping, type WaitOutcome } from '../../../schemas/api/container.ts';
import type { ConflictReason } from '../../../schemas/errors.ts';
import type { StatusSeen } from '../../../schemas/wire/answers.ts';
import type { Outcome } from '../../../lib/rpc/partition-client.ts';
import { decodeAnswer } from '../../../lib/rpc/decode.ts';
import { succeeded } from '../../call.ts';
import { conflict, ok } from '../../http/respond.ts';

/** Time in which an unhealthy container may become healthy again before it counts as failed. */
const waitUnhealthyMs = 5000;

export type Goal =
  /** Any of these will do. */
  | { readonly until: 'status'; readonly statuses: readonly string[] }
  /** `generation`: undefined before the first look, where the client named none. */
  | {
      readonly until: 'settled';
      readonly generation: number | undefined;
      readonly stableMs: number;
      /** True if its end alone counts; `undefined` leaves that to its policy. */
      readonly isJob?: boolean | undefined;
    };

export type WaitStep =
  | { readonly kind: 'answer'; readonly outcome: Outcome }
  /** The container is not there: it is gone, or never was. */
  | { readonly kind: 'absent' }
  | { readonly kind: 'wait'; readonly last: StatusSeen | undefined };

const answer = (outcome: Outcome): WaitStep => ({ kind: 'answer', outcome });

/**
 * The next step of a wait, given the status.
 * @param upMs for how long the container has been seen to run as it does, well or unhealthy
 */
export function judgeWait(
  goal: Goal,
  outcome: Outcome,
  last: StatusSeen | undefined,
  upMs: (view: StatusSeen) => number = () => 0,
): WaitStep {
  if (outcome.code === 'not_found') {
    if (goal.until === 'status' && !goal.statuses.includes('removed')) return answer(outcome);
    return last === undefined ? { kind: 'absent' } : answer(goneAs(goal, last));
  }
  // The owner is away: ask again until the timeout.
  if (!succeeded(outcome)) return { kind: 'wait', last };
  const view = decodeAnswer('container.status', outcome.body).data;
  if (goal.until === 'settled') {
    const settled = settledAs(view, goal, upMs(view));
    return settled === undefined ? { kind: 'wait', last: view } : answer(ok({ ...view, outcome: settled }));
  }
  if (goal.statuses.includes(view.status)) return answer(outcome);
  const whys = goal.statuses.map((wanted) => whyNever(wanted, view));
  const [why] = whys;
  return why === undefined || whys.includes(undefined) ? { kind: 'wait', last: view } : answer(conflict(...why));
}

/** The answer for a container that is gone. */
export const goneAs = ({ until }: Goal, view: object): Outcome =>
  ok({ ...view, status: 'removing', desired: 'removed', ...(until === 'settled' ? { outcome: 'removed' } : {}) });

/** A container that is to run passes through these. */
const onItsWay: ReadonlySet<string> = new Set(['pending', 'pulling', 'starting', 'running', 'backoff']);
const ofAStop: ReadonlySet<string> = new Set(['stopping', 'stopped', 'failed']);

type Never = readonly [reason: ConflictReason, message: string];

/**
 * The reason why the status cannot come unless somebody changes the container; `undefined` if it
 * can.
 */
function whyNever(wanted: string, view: StatusSeen): Never | undefined {
  const { status, desired, reason, message } = view;
  if (status === 'removing') return wanted === 'removed' ? undefined : ['removing', 'the container is being removed'];
  const why = reason === null ? '' : ` (${message === null ? reason : `${reason}: ${message}`})`;
  const isAtRest = (status === 'stopped' || status === 'failed') && isOf(view, view.generation);
  if (desired === 'stopped' && onItsWay.has(wanted))
    return isAtRest
      ? ['not_running', `the container is ${status}${why}, and becomes ${wanted} only after a start`]
      : ['not_running', `the container is to stop, and becomes ${wanted} only after a start`];
  if (desired === 'stopped' && isAtRest && ofAStop.has(wanted))
    return ['not_running', `the container is ${status}${why} already`];
  // A login of its registry starts it again.
  if (desired === 'running' && reason === 'image_auth') return undefined;
  if (desired === 'running' && status === 'failed' && isAtRest && onItsWay.has(wanted))
    return ['not_running', `the container is failed${why}, and is tried again only after a start or a change`];
  return undefined;
}

/** Its host has spoken of this generation or a later one, or no host has it. */
const isOf = ({ observed_generation: observed, host_key: host }: StatusSeen, generation: number): boolean =>
  observed >= generation || host === null;

/** The outcome of the declaration; `undefined` until it is known. */
function settledAs(
  view: StatusSeen,
  {
    generation: of = view.generation,
    stableMs,
    isJob = view.restart_policy === 'never',
  }: Extract<Goal, { until: 'settled' }>,
  upMs: number,
): WaitOutcome | undefined {
  const { status, desired, reason, update, move } = view;
  if (desired === 'removed') return 'removed';
  if (update !== undefined && update.generation > of) return 'superseded';
  const phase = update !== undefined && decidesOf(update, of) ? update.phase : undefined;
  if (phase === 'rolled_back' || phase === 'failed') return phase;
  if (move?.phase === 'failed' && move.generation === of && desired === 'running') return 'failed';
  if (reason === 'completed' && (status === 'stopped' || desired === 'stopped')) return 'done';
  if (desired === 'stopped') return status === 'stopped' ? 'stopped' : isFailure(view, of) ? 'failed' : undefined;
  if (phase === 'preparing' || phase === 'verifying') return undefined;
  // A move that nobody asked for does not hold up what somebody declares.
  if (move?.phase === 'preparing' && move.generation !== undefined) return undefined;
  if (isFailure(view, of)) return 'failed';
  // The run before the change is still up.
  if (status !== 'running' || view.observed_generation < of) return undefined;
  // One that is started again for that is not seen running for so long.
  if (reason === 'unhealthy') return upMs >= Math.max(stableMs, waitUnhealthyMs) ? 'failed' : undefined;
  if (reason !== null || isJob) return undefined;
  return phase === 'done' || upMs >= stableMs ? 'done' : undefined;
}

/** A change that makes no update of its own, such as a start, may come while one is under way. */
const decidesOf = (
  { generation: first, last_generation: last }: NonNullable<StatusSeen['update']>,
  of: number,
): boolean => first <= of && of <= last;

/** It is not tried again by itself, or fails again and again. */
const isFailure = (view: StatusSeen, generation: number): boolean =>
  (view.status === 'failed' || isLooping(view)) && isOf(view, generation);
