/** Members (actors processes), their leases, and hand-overs. */
import { seconds, hours } from '../units.ts';

export const members = {
  /**
   * A lease is good for this long from the start of its last renewal, on its member's own monotonic
   * clock.
   */
  leaseMs: 1 * seconds,
  leaseRenewMs: 250,
  memberRequestMs: 500,
  membersPerRead: 256,
  /**
   * A lease that was seen unchanged for this long is over on every clock: `leaseMs`, and half of it
   * to spare.
   */
  leaseUnchangedMs: 1.5 * seconds,
  /**
   * The record that tells a process that its lease ended. An absent record says the same.
   */
  deadMemberTtlMs: 1 * hours,
  /** Partitions go to a member that has been live for this long. */
  memberSettledMs: 1 * seconds,
  /** A process answers `not_owner` for this long after it gave a partition away. */
  notOwnerLingerMs: 500,
  /** A process that stops has this long to give its partitions away. */
  leaveMs: 8 * seconds,
  /**
   * Commits under way at a hand-over have this long; what has not been acknowledged then, its
   * sender asks for again.
   */
  handOverSettleMs: 3 * seconds,
} as const;
