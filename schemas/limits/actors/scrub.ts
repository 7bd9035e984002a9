/** Scrub: replicas compared with one another. */
import { MiB, seconds, minutes } from '../units.ts';

export const scrub = {
  scrubIntervalMs: 10 * minutes,
  scrubPageMessages: 256,
  scrubPageBytes: 1 * MiB,
  scrubReadMs: 2 * seconds,
  /**
   * Between one read of a page and the next: so many times as long as the read took, within these.
   */
  scrubRest: 4,
  scrubPaceMinMs: 20,
  scrubPaceMaxMs: 200,
  /**
   * Any of three replicas answers: some eight reads of a page, mostly. One that never does is away.
   */
  scrubAttempts: 60,
  /**
   * A replica that follows is heard by the leader, and behind by fewer entries: it has them long
   * before the second look.
   */
  scrubSilenceMs: 5 * seconds,
  scrubLag: 1000,
  /** Between a suspicion and the second look. */
  scrubConfirmMs: 10 * seconds,
  /** A replica that diverges in so many pages is replaced, whatever the others hold. */
  scrubDivergentPages: 16,
} as const;
