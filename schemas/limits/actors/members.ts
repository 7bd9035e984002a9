/** Members (actors processes), their leases, and hand-overs. */
import { minutes, seconds } from '../units.ts';

export const members = {
  /**
   * A lease is good for this long from the start of its last renewal, on its member's own monotonic
   * clock.
   */
  leaseMs: 1 * seconds,
  leaseRenewMs: 250,
  memberRequestMs: 500,
  membersPerRead: 256,
  /** Members that each one watches, so that each is watched by as many. */
  membersWatched: 3,
  /** A member that was seen unchanged for so long may be dead, and counts for no watch. */
  memberDoubtedMs: 600,
  /** A member lists all of them every so often, times their number. */
  memberListPaceMs: 50,
  /**
   * A lease that was seen unchanged for this long has ended on every clock: `leaseMs`, and half of
   * it as a margin.
   */
  leaseUnchangedMs: 1.5 * seconds,
  /** Time for which a member must have been live before it gets partitions. */
  memberSettledMs: 1 * seconds,
  /** Time in which a process that stops gives its partitions away. */
  leaveMs: 8 * seconds,
  /**
   * Time in which a process that stops stores its partitions again first, if the store went back in
   * time (ADR 48), and how often it says that it does.
   */
  storeAgainStopMs: 5 * minutes,
  storeAgainSaidMs: 5 * seconds,
  /** Time for which a hand-over checkpoints while turns still run. */
  handOverDrainMs: 2 * seconds,
  /**
   * Time for commits under way at a hand-over; senders repeat asks that are not acknowledged by
   * then.
   */
  handOverSettleMs: 3 * seconds,
} as const;
