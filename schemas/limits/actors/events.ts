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
  /** Bytes of one page of recent events between gateway and actor. */
  recentEventsBytes: 512 * KiB,
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
  /**
   * Bytes of the header of a message that says who caused its events; an author takes 4 KiB at
   * most. NATS allows 64 KiB for all headers of a message.
   */
  eventAuthorsBytes: 32 * KiB,
} as const;
