/**
 * Runs of a container: those that must not be broken off, by its policy (ADR 36), and the time that
 * one has been up. Pure.
 */
import type { ContainerRecord, Observation } from '../../../schemas/api/container.ts';
import { policyOf } from '../../../schemas/api/policy.ts';
import type { TurnContext } from '../turn.ts';

/** `true` if it runs once only, and may have begun to. */
export const isRunningOnce = (record: ContainerRecord): boolean =>
  policyOf(record).restart === 'never' && record.desired === 'running' && record.placement.phase === 'placed';

/**
 * The same, except for a run that can't have begun: it waits for its image, its values or its
 * start.
 */
export const isOnItsOnlyRun = (record: ContainerRecord): boolean =>
  isRunningOnce(record) && !['pulling', 'backoff', 'failed'].includes(record.observed.status);

/** `true` if it is up without an end, healthy or not; any other reason leaves that open. */
const isUp = ({ status, reason }: Observation): boolean =>
  status === 'running' && (reason === null || reason === 'unhealthy');

type Seen = Pick<ContainerRecord, 'observed' | 'observedOrder'>;

/** `true` if a report is the first of a run that is up, or of a change of its health. */
export const isNewRun = (before: Seen, after: Seen): boolean =>
  isUp(after.observed) &&
  (before.observed.status !== 'running' ||
    before.observed.reason !== after.observed.reason ||
    before.observed.started_at !== after.observed.started_at ||
    before.observed.restart_count !== after.observed.restart_count ||
    before.observedOrder.generation !== after.observedOrder.generation);

/**
 * Minimum time, in ms, for which a container has been up as it is; `undefined` if it is not up, or
 * if its host is not heard. Its owner measures it by its own steady clock, from the report on or
 * from the load: the clocks of hosts, and the times that earlier owners stored, may be wrong by
 * days.
 * @param sinceMs from `PartitionView.inMemory`
 */
export function upMs(
  { placement, observed }: ContainerRecord,
  sinceMs: number,
  context: TurnContext,
): number | undefined {
  if (placement.phase !== 'placed' || context.fleet.condition(placement.host) !== 'up') return undefined;
  return isUp(observed) ? context.servedMs - sinceMs : undefined;
}
