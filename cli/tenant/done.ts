/**
 * Decides when a container has become what was asked for. Every command that waits uses it
 * (docs/cli.md, "Waiting for containers"). Pure.
 */
import { limits } from '../../schemas/limits.ts';
import type { Schemas } from '../client/api.ts';
import type { Declared, StatusView, WaitedStatus } from '../client/wait.ts';

type Policy = Pick<Schemas['Policy'], 'restart' | 'health'>;

/** Goal of a wait. */
export type Goal = Omit<Declared, 'generation'>;

export function goalOf(
  { restart, health }: Policy,
  stableSeconds: number = limits.cliStableSeconds,
  isJob = restart === 'never',
): Goal {
  const isChecked = health !== null && !('none' in health);
  // A container with a health check is a server, not a job.
  return { isJob: isJob && !isChecked, stableSeconds: isChecked ? 0 : stableSeconds };
}

export const isUnderWay = ({ update }: Pick<StatusView, 'update'>): boolean =>
  update?.phase === 'preparing' || update?.phase === 'verifying';

export const isCompleted = ({ status, reason }: StatusView): boolean => status === 'stopped' && reason === 'completed';

const onTheWayUp: readonly WaitedStatus[] = ['pending', 'pulling', 'starting', 'running', 'backoff'];
const atRest: readonly WaitedStatus[] = ['stopped', 'failed'];

/** True if nothing but another command can bring this status. */
export function cannotCome({ status, desired, reason }: StatusView, awaited: WaitedStatus): boolean {
  if (awaited === 'removed' || awaited === 'removing' || awaited === status) return false;
  if (status === 'removing') return true;
  const isAtRest = atRest.includes(status);
  if (isAtRest && desired === 'stopped') return awaited !== 'unknown' && awaited !== 'lost';
  // A login of its registry starts it again.
  if (desired === 'running' && reason === 'image_auth') return false;
  if (desired === 'stopped' || status === 'failed') return onTheWayUp.includes(awaited);
  return false;
}
