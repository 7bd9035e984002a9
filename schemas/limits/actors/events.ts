/** Events of containers, and the stream EVENTS. */
import { KiB, MiB, seconds, days } from '../units.ts';

export const events = {
  eventAgeMs: 7 * days,
  eventsPerContainer: 1000,
  eventStreamBytes: 4 * 1024 * MiB,
  /**
   * The owner shows an event for this long after it was published: a replica that lags by more is
   * not read from.
   */
  eventsSettledMs: 10 * seconds,
  /** Of such events, in a partition. */
  eventsSettlingBytes: 4 * MiB,
  /** Of one page of recent events between gateway and actor. */
  recentEventsBytes: 512 * KiB,
  /**
   * A checkpoint waits for its events for this long; then they are parked in the bucket, and the
   * mark moves on.
   */
  eventsPatienceMs: 500,
  /**
   * Of parked events in a partition; about 20,000. Beyond, the mark stands still until some are
   * published.
   */
  eventsParkedBytes: 16 * MiB,
  /** Of one key of them, which is written again until it is full. */
  eventsParkedKeyBytes: 128 * KiB,
} as const;
