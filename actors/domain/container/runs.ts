/**
 * Runs of a container: which may not be broken off, by its policy (ADR 36), and for how long one is
 * up. Pure.
 */
import type { ContainerRecord, Observation } from '../../../schemas/api/container.ts';
import { policyOf } from '../../../schemas/api/policy.ts';
import type { TurnContext } from '../turn.ts';

/** Whether it runs once only, and may have begun to. */
export const isRunningOnce = (record: ContainerRecord): boolean =>
  policyOf(record).restart === 'never' && record.desired === 'running' && record.placement.phase === 'placed';

/** The same, but for what can not have begun: it waits for its image, its values or its start. */
export const isOnItsOnlyRun = (record: ContainerRecord): boolean =>
  isRunningOnce(record) && !['pulling', 'backoff', 'failed'].includes(record.observed.status);

/** Up without an end, well or unhealthy; what else is said of it leaves that open. */
const isUp = ({ status, reason }: Observation): boolean =>
  status === 'running' && (reason === null || reason === 'unhealthy');

type Seen = Pick<ContainerRecord, 'observed' | 'observedOrder'>;

/** Whether a report is the first of a run that is up, or of how it is. */
export const isNewRun = (before: Seen, after: Seen): boolean =>
  isUp(after.observed) &&
  (before.observed.status !== 'running' ||
    before.observed.reason !== after.observed.reason ||
    before.observed.started_at !== after.observed.started_at ||
    before.observed.restart_count !== after.observed.restart_count ||
    before.observedOrder.generation !== after.observedOrder.generation);

/**
 * For how long a container is known to be up as it is, at least; undefined: it is not, or nobody
 * hears of it. Its owner measures it by its own steady clock, from the report on or from the load:
 * the clocks of hosts, and the times that owners before have stored, may be wrong by days.
 * @param sinceMs `PartitionView.inMemory` has it
 */
export function upMs(
  { placement, observed }: ContainerRecord,
  sinceMs: number,
  context: TurnContext,
): number | undefined {
  if (placement.phase !== 'placed' || context.fleet.condition(placement.host) !== 'up') return undefined;
  return isUp(observed) ? context.servedMs - sinceMs : undefined;
}
