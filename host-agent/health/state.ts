/**
 * A container's health as it follows from its checks, by Docker's rules: a failure in the start
 * period does not count, one success makes it healthy, and so many failures in a row unhealthy.
 * Pure.
 */
import type { HealthCheck } from '../../schemas/api/policy.ts';
import { limits } from '../../schemas/limits.ts';

export interface HealthState {
  readonly health: 'starting' | 'healthy' | 'unhealthy';
  /** Checks that failed in a row. */
  readonly failures: number;
  /** The fault of the last failed check. */
  readonly fault: string | undefined;
}

export const unchecked: HealthState = { health: 'starting', failures: 0, fault: undefined };

/**
 * @param fault what was wrong; `undefined` if the check has passed
 * @param upMs how long the container has run
 */
export function afterCheck(
  before: HealthState,
  fault: string | undefined,
  { retries, start_period }: Pick<HealthCheck, 'retries' | 'start_period'>,
  upMs: number,
): HealthState {
  if (fault === undefined) return { health: 'healthy', failures: 0, fault: undefined };
  if (before.health === 'starting' && upMs < start_period * 1000) return { ...before, fault };
  const failures = before.failures + 1;
  return { health: failures >= retries ? 'unhealthy' : before.health, failures, fault };
}

/**
 * Milliseconds until the next check: few while the container starts, so that it is soon known as
 * up.
 */
export function nextCheckMs(
  { health }: HealthState,
  { interval, start_period }: Pick<HealthCheck, 'interval' | 'start_period'>,
  upMs: number,
): number {
  const isStarting = health === 'starting' && upMs < start_period * 1000;
  return isStarting ? Math.min(interval * 1000, limits.healthStartMs) : interval * 1000;
}
