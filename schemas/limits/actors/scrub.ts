/** Scrub: replicas compared with one another. */
import { MiB, seconds, minutes } from '../units.ts';

export const scrub = {
  scrubIntervalMs: 10 * minutes,
  scrubPageMessages: 256,
  scrubPageBytes: 1 * MiB,
  scrubReadMs: 2 * seconds,
  /**
   * The pause after each read of a page: so many times as long as the read took, within these
   * bounds.
   */
  scrubRest: 4,
  scrubPaceMinMs: 20,
  scrubPaceMaxMs: 200,
  /**
   * Reads of a page until each replica has answered: any of the three may answer, so about eight
   * usually suffice. A replica that never answers is away.
   */
  scrubAttempts: 60,
  /**
   * The leader has heard from a replica within this time, and the replica lacks fewer entries than
   * this: so it has them long before the second comparison.
   */
  scrubSilenceMs: 5 * seconds,
  scrubLag: 1000,
  /** The time between a suspicion and the second comparison. */
  scrubConfirmMs: 10 * seconds,
  /**
   * A replica that diverges in so many pages is to be replaced, whatever its other pages contain.
   */
  scrubDivergentPages: 16,
} as const;
