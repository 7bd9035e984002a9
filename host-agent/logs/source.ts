import type { ContainerId, TenantId } from '../../schemas/ids.ts';

/** The container that a log belongs to. */
export interface LogSource {
  readonly tenant: TenantId;
  readonly id: ContainerId;
}
