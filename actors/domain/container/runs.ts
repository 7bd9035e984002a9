/** Which runs of a container may not be broken off, by its policy (ADR 36). Pure. */
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import { policyOf } from '../../../schemas/api/policy.ts';

/** Whether it runs once only, and may have begun to. */
export const isRunningOnce = (record: ContainerRecord): boolean =>
  policyOf(record).restart === 'never' && record.desired === 'running' && record.placement.phase === 'placed';

/** The same, but for what can not have begun: it waits for its image, its values or its start. */
export const isOnItsOnlyRun = (record: ContainerRecord): boolean =>
  isRunningOnce(record) && !['pulling', 'backoff', 'failed'].includes(record.observed.status);
