/**
 * When a container has become what was asked for: the one definition of every command that waits
 * (docs/cli.md, "Done"). Pure.
 */
import { limits } from '../../schemas/limits.ts';
import type { Schemas } from '../client/api.ts';

export type StatusView = Schemas['ContainerStatusView'];
type Policy = Pick<Schemas['Policy'], 'restart' | 'health'>;

/** What is waited for. */
export interface Goal {
  /** It runs once: its end counts, and the exit code of it. */
  readonly isJob: boolean;
  /** Its policy names a health check, which says when it is up. */
  readonly isChecked: boolean;
  /** An unhealthy one is started again, and may become healthy. */
  readonly isRestartedUnhealthy: boolean;
  /** How long one without a check must stay up. */
  readonly stableMs: number;
}

export function goalOf({ restart, health }: Policy, stableSeconds: number = limits.cliStableSeconds): Goal {
  const check = health === null || 'none' in health ? undefined : health;
  return {
    isJob: restart === 'never',
    isChecked: check !== undefined,
    isRestartedUnhealthy: check?.restart_unhealthy === true,
    stableMs: stableSeconds * 1000,
  };
}

/** What is known beside the status. */
export interface Look {
  /** How long this run has been seen in this state. */
  readonly heldMs: number;
  /** This machine's clock, which may be off by `limits.cliClockMarginMs`. */
  readonly nowMs: number;
  /** The host has watched it for as long as an update asks. */
  readonly isVerified?: boolean;
}

/** - `over`: what is waited for can't come any more. */
export type Verdict = 'done' | 'waiting' | 'over';

export const isUnderWay = ({ update }: Pick<StatusView, 'update'>): boolean =>
  update?.phase === 'preparing' || update?.phase === 'verifying';

export const isCompleted = ({ status, reason }: StatusView): boolean => status === 'stopped' && reason === 'completed';

export function verdictOf(view: StatusView, goal: Goal, { heldMs, nowMs, isVerified = false }: Look): Verdict {
  if (isUnderWay(view)) return 'waiting';
  if (isCompleted(view)) return 'done';
  switch (view.status) {
    case 'failed':
    case 'removing':
      return 'over';
    case 'stopped':
      return view.desired === 'running' ? 'waiting' : 'over';
    case 'backoff':
      return view.reason === 'crash_loop' ? 'over' : 'waiting';
    case 'running':
      return verdictOfRun(view, goal, { heldMs, nowMs, isVerified });
    default:
      return 'waiting';
  }
}

function verdictOfRun(view: StatusView, goal: Goal, { heldMs, nowMs, isVerified }: Required<Look>): Verdict {
  const isHeld = heldMs >= goal.stableMs;
  // A moment, because this may be what the check of before has said.
  if (view.reason === 'unhealthy') return isHeld && !goal.isRestartedUnhealthy ? 'over' : 'waiting';
  if (goal.isChecked) return 'done';
  if (goal.isJob) return 'waiting';
  const upMs = view.started_at === null ? 0 : nowMs - Date.parse(view.started_at);
  return isHeld || isVerified || upMs >= goal.stableMs + limits.cliClockMarginMs ? 'done' : 'waiting';
}

type Awaited = Schemas['ContainerStatus'] | 'removed';

const onTheWayUp: readonly Awaited[] = ['pending', 'pulling', 'starting', 'running', 'backoff'];
const atRest: readonly Awaited[] = ['stopped', 'failed'];

/** Whether nothing but another command can bring this status. */
export function cannotCome({ status, desired }: StatusView, awaited: Awaited): boolean {
  if (awaited === 'removed' || awaited === 'removing' || awaited === status) return false;
  if (status === 'removing') return true;
  const isAtRest = atRest.includes(status);
  if (isAtRest && desired === 'stopped') return awaited !== 'unknown' && awaited !== 'lost';
  if (desired === 'stopped' || status === 'failed') return onTheWayUp.includes(awaited);
  return false;
}
