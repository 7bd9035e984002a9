/** A partition: turns, journal, checkpoints, loading, what it remembers and for how long. */
import { KiB, MiB, seconds, minutes, hours, days } from '../units.ts';

export const partition = {
  /** Partitions of a new cluster. A cluster keeps the number it was initialised with. */
  partitions: 16,
  /**
   * Two wall clocks agree when the second, read up to so much later, shows no more than this beyond
   * the first.
   */
  clockTrustMs: 2 * hours,
  /** A change of the wall clock against the monotonic one that counts as a jump. */
  clockStepMs: 1 * minutes,
  /** A gateway believes a wall clock that did not jump for this long. */
  clockSettleMs: 24 * hours,
  /**
   * A partition believes wall clocks that agreed for this long: as long as it keeps anything by
   * default.
   */
  clockAgreedMs: 30 * days,
  /** An idle partition commits its clock this often. */
  clockKeptMs: 10 * minutes,
  journalSlots: 1024,
  /** With a full ring, between two entries; from half of it on, in proportion to the square. */
  journalThrottleMs: 100,
  journalEntryBytes: 768 * KiB,
  /** Of one record as it is stored; with half an entry before it, it still fits the entry. */
  recordBytes: 320 * KiB,
  turnsQueued: 20_000,
  commitTimeoutMs: 2 * seconds,
  /**
   * Of one page of a load; a replica that is away swallows it, and the next attempt may go to
   * another.
   */
  loadReadMs: 1.5 * seconds,
  loadReadAttempts: 6,
  /** Loads that find records missing before the partition is released. */
  loadAttempts: 4,
  /** Loads that fail for any reason before it is released, such as no replica answering. */
  loadAttemptsMax: 20,
  /** Between two such series of one process. */
  loadRestMinMs: 5 * seconds,
  loadRestMaxMs: 5 * minutes,
  /** Loads of one partition that the loss of the lease may end before this process rests, too. */
  loadsRevoked: 2,
  /** Long work yields to the event loop after this. */
  sliceMs: 20,
  /**
   * Of the work that messages ask for, in the turn of the event loop that they arrive in; the rest
   * waits for a slice.
   */
  atOnceMs: 10,
  /**
   * Messages whose work waits for slices. Beyond, the sender is told to ask again, or hears nothing
   * and does.
   */
  worksBegun: 1000,
  /** Containers of a report that one turn takes in. */
  reportItemsPerTurn: 10,
  /**
   * Of a write that a replicated stream refuses for another with the same fence that is in flight.
   */
  checkInFlightRetries: 100,
  /**
   * A server makes a store on its disk for every atomic batch, whatever its size (ADR 10): few and
   * large ones.
   */
  checkpointBatchMessages: 256,
  checkpointBatchBytes: 4 * MiB,
  /** Between two batches of a partition, where one holds all that there is. */
  checkpointPaceMs: 250,
  /** Between two batches of events of a process. */
  eventsPaceMs: 50,
  checkpointTimeoutMs: 5 * seconds,
  operationTtlMs: 2 * minutes,
  /**
   * Outcomes of writes that changed nothing, refusals among them: in the memory of a partition, for
   * as long as the others.
   */
  unchangedKept: 20_000,
  idempotencyTtlMs: 24 * hours,
  /**
   * What is bounded by the hour counts for so long: deletions, removed peers, new keys of a peer.
   */
  anHourMs: 1 * hours,
  tombstoneTtlMs: 7 * days,
  /**
   * The cap `deletes_per_hour` where nobody has set it: so many for each container of the cap,
   * within these. No cap of containers has the largest. Above it a tenant creates none; it may
   * delete at any time. What it adds in an hour is at most this and its cap of containers, for all
   * of these may end at once.
   *
   * A tombstone takes 340 bytes of the owner's memory and 160 in the bucket, and up to 800 and 530
   * with an `Idempotency-Key` of 255 characters (measured). A tenant with the default cap of 20
   * adds (300 + 20) × 24 = 7,680 a day: 2.6 MB, at most 6. If it goes on for seven days, and nobody
   * else does: 54,000, 18 MB, at most 43.
   */
  deletesPerHourPerCap: 15,
  deletesPerHourMin: 300,
  deletesPerHourMax: 5000,
  /**
   * Tombstones of a partition: beyond, those of the tenant with the most end early, a day after the
   * deletion at the earliest. 68 MB, at most 160, for a partition; a process with all 16 has 1.1
   * GB, at most 2.6. More only where tenants add more than this in one day: 26 for each partition
   * that do nothing else, with the default cap.
   */
  goneContainersPerPartition: 200_000,
  deleteMarkerTtlMs: 1 * hours,
  sweepIntervalMs: 1 * seconds,
  sweepChanges: 200,
  placementHistory: 32,
  /** Records that a sweep passes in one step (lib/time/slices.ts). */
  sweepStepRecords: 64,
  /** A process that missed this many sweeps stood still, and heard no heartbeats meanwhile. */
  sweepsMissed: 3,
  /** One page of a load. */
  loadReadMessages: 500,
  loadReadBytes: 4 * MiB,
  /** Between two attempts to take an epoch. */
  epochRetryMinMs: 50,
  epochRetryMaxMs: 2 * seconds,
  /** Between two attempts to load a partition or to publish its events. */
  storeRetryMinMs: 100,
  storeRetryMaxMs: 5 * seconds,
  /** Between two attempts of `checkInFlightRetries`. */
  checkInFlightMinMs: 1,
  checkInFlightMaxMs: 16,
} as const;
