/**
 * What lets an owner answer from its memory: while the lease of the member that took the epoch is
 * valid, no other can have taken it. Writes need no lease; the fence is enough for them.
 */
import type { MemberId } from '../../schemas/ids.ts';

export interface Lease {
  readonly member: MemberId;
  isValid(): boolean;
}
