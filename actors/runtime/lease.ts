/**
 * A valid lease lets an owner answer from memory: while the lease of the member that took the epoch
 * is valid, no other member can have taken it. Writes need no lease; the fence is enough.
 */
import type { MemberId } from '../../schemas/ids.ts';

export interface Lease {
  readonly member: MemberId;
  isValid(): boolean;
}
