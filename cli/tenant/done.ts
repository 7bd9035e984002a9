/**
 * When a container has become what was asked for: what every command that waits asks of the server
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
  /** How long it must stay up: 0 where a health check says when it is up. */
  readonly stableSeconds: number;
}

export function goalOf(
  { restart, health }: Policy,
  stableSeconds: number = limits.cliStableSeconds,
  isJob = restart === 'never',
): Goal {
  const isChecked = health !== null && !('none' in health);
  // What has a check is a server.
  return { isJob: isJob && !isChecked, stableSeconds: isChecked ? 0 : stableSeconds };
}

export const isUnderWay = ({ update }: Pick<StatusView, 'update'>): boolean =>
  update?.phase === 'preparing' || update?.phase === 'verifying';

export const isCompleted = ({ status, reason }: StatusView): boolean => status === 'stopped' && reason === 'completed';

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
