/** Members (actors processes), their leases, and hand-overs. */
import { minutes, seconds } from '../units.ts';

export const members = {
  /**
   * A lease is good for this long from the start of its last renewal, on its member's own monotonic
   * clock.
   */
  leaseMs: 1 * seconds,
  leaseRenewMs: 250,
  membersPerRead: 256,
  /**
   * A lease that was seen unchanged for this long has ended on every clock: `leaseMs`, and half of
   * it as a margin.
   */
  leaseUnchangedMs: 1.5 * seconds,
  /** Time in which a process that stops gives its partitions away. */
  leaveMs: 8 * seconds,
  /**
   * Time in which a process that stops stores its partitions again first, if the store went back in
   * time (ADR 48).
   */
  storeAgainStopMs: 5 * minutes,
} as const;
