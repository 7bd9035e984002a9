/** Events of containers, and the stream EVENTS. */
import { KiB, MiB, seconds, days } from '../units.ts';

export const events = {
  eventAgeMs: 7 * days,
  eventsPerContainer: 1000,
  eventStreamBytes: 4 * 1024 * MiB,
  /**
   * Time for which the owner shows an event after it was published: a replica may lag by this much.
   */
  eventsSettledMs: 10 * seconds,
  /** Bytes of such events in a partition. */
  eventsSettlingBytes: 4 * MiB,
  /**
   * Bytes of parked events in a partition, about 20,000 events. Beyond this, the mark does not move
   * until some are published.
   */
  eventsParkedBytes: 16 * MiB,
  /** Bytes of one key of parked events, which is written again until it is full. */
  eventsParkedKeyBytes: 128 * KiB,
  /**
   * Keys of parked events that one batch deletes once they are published: with these and
   * `checkpointBatchMessages`, a batch has fewer than `natsBatchMessages`.
   */
  eventsFreedPerBatch: 200,
} as const;
