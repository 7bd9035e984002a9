/** A partition: turns, journal, checkpoints, loading, what it remembers and for how long. */
import { KiB, MiB, seconds, minutes, hours, days } from '../units.ts';

export const partition = {
  /** Partitions of a new cluster. A cluster keeps the number it was initialised with. */
  partitions: 16,
  /**
   * A partition trusts wall clocks that have agreed for this long, which is the longest that it
   * keeps anything by default.
   */
  clockAgreedMs: 30 * days,
  /** Entries in the ring of a journal. Part of a cluster's storage format; never change it. */
  journalSlots: 2048,
  /**
   * Bytes of a member's entries with commits that are in no checkpoint; then writes are refused.
   */
  journalBytes: 64 * MiB,
  /**
   * Writes are refused while the put of an entry has had no outcome for this long: longer than
   * JetStream takes to elect another leader.
   */
  journalStalledMs: 10 * seconds,
  /**
   * Bytes of such commits of one partition; then its writes are refused. A tenant alone has half of
   * it (actors/runtime/shares.ts).
   */
  uncheckpointedBytes: 16 * MiB,
  /**
   * From this share of the journal on, and from so many bytes of its own, a partition rests no
   * longer before its next checkpoint.
   */
  journalFillingShare: 1 / 3,
  checkpointDueBytes: 3 * MiB,
  /** From this share of the ring on, commits of partitions that do not checkpoint are put again. */
  journalCarryShare: 0.75,
  /**
   * Messages of the stream before the seal that a reader of a journal looks at first, and how this
   * grows while there is no entry among them.
   */
  journalReadWindow: 512,
  journalReadGrowth: 8,
  /** Time for which a journal that was read serves the partitions that are loaded next. */
  journalReadKeptMs: 30 * seconds,
  /** A journal that no mark names is emptied when it was sealed for this long. */
  journalKeptMs: 1 * minutes,
  /**
   * Bytes of the records that one turn may change. With its events, its lines and its outcome it
   * has at most `journalEntryBytes`.
   */
  turnBytes: 384 * KiB,
  /**
   * The pause between two entries when the ring is full; from half full on it grows with the
   * square.
   */
  journalThrottleMs: 100,
  journalEntryBytes: 768 * KiB,
  /** Bytes of one stored record; it still fits into an entry that is half full. */
  recordBytes: 320 * KiB,
  turnsQueued: 20_000,
  /** Interval at which turns whose senders have given up make room, while all places are taken. */
  turnsQueuedLookMs: 100,
  /**
   * Bytes of changes that wait for the journal, and of the answers to them, in a partition; then
   * its writes are refused. A tenant alone has half of it, as of `turnsQueued`.
   */
  uncommittedBytes: 32 * MiB,
  /**
   * Reads and repeated writes that wait for a commit, of a partition and of one tenant; further
   * ones are refused.
   */
  answersWaiting: 20_000,
  answersWaitingOfTenant: 5000,
  /**
   * Bytes of the answers to these, which one more answer may exceed. The rest are made when the
   * commit is there.
   */
  answersWaitingBytes: 16 * MiB,
  answersWaitingBytesOfTenant: 4 * MiB,
  /** Hosts without containers of a partition whose last change it remembers, at least. */
  hostRevisionsKept: 1000,
  /** Time for which changes of a container are announced after its status was asked for. */
  watchedMs: 1 * minutes,
  watchedContainers: 50_000,
  /** After this long without an acknowledgement the owner writes again, under a new epoch. */
  commitTimeoutMs: 1 * seconds,
  /** Attempts of a load, and their pause, while the replica that answered lacks the own epoch. */
  loadTailAttempts: 4,
  loadTailMinMs: 20,
  loadTailMaxMs: 200,
  /**
   * Greatest age of what was read ahead when its partition is taken. Far less than
   * `deleteMarkerTtlMs`: a key that is deleted meanwhile still has its marker.
   */
  readAheadKeptMs: 10 * seconds,
  /** Partitions that a process reads ahead, and bytes of all of them. */
  readAheadPartitions: 64,
  readAheadBytes: 256 * MiB,
  /** Loads that find records missing before the partition is released. */
  loadAttempts: 4,
  /** The pause between two such series of one process. */
  loadRestMinMs: 5 * seconds,
  loadRestMaxMs: 5 * minutes,
  /** Loads of one partition that the loss of the lease may end before this process rests, too. */
  loadsRevoked: 2,
  /** Time for which long work runs before it yields to the event loop. */
  sliceMs: 20,
  /**
   * Time for which the work for messages runs in the turn of the event loop in which they arrive;
   * the rest waits for a slice.
   */
  atOnceMs: 10,
  /**
   * Messages whose work waits for slices. Beyond this, the sender is asked to try again, or gets no
   * answer and tries again.
   */
  worksBegun: 1000,
  /** Of one host: a flood of its messages leaves the others room, and their turns. */
  worksBegunPerHost: 64,
  /** Containers of a report that one turn processes. */
  reportItemsPerTurn: 10,
  /**
   * Retries of a write that a replicated stream refuses because another write with the same fence
   * is in flight.
   */
  checkInFlightRetries: 100,
  /**
   * The size of an atomic batch: few and large ones, because a server makes a store on its disk for
   * each, whatever its size (ADR 10).
   */
  checkpointBatchMessages: 768,
  checkpointBatchBytes: 4 * MiB,
  /**
   * The longest time between two batches of a partition, if one batch holds all changes; half of it
   * at least, by chance. A record that changes often meanwhile is written once.
   */
  checkpointPaceMs: 3 * seconds,
  /** Time for which a batch keeps those of other partitions from being sent. */
  checkpointTurnMs: 250,
  /** Interval at which a partition that rests looks whether the journal fills. */
  checkpointLookMs: 250,
  /** The time between two batches of events of a process. */
  eventsPaceMs: 250,
  checkpointTimeoutMs: 5 * seconds,
  operationTtlMs: 2 * minutes,
  /**
   * Outcomes of writes that changed nothing, including refusals, in the memory of a partition; they
   * are kept as long as other outcomes.
   */
  unchangedKept: 20_000,
  /**
   * Answers that outcomes in memory share, in number and in bytes; beyond either it forgets them.
   */
  sharedAnswers: 256,
  sharedAnswersBytes: 1 * MiB,
  /**
   * Bytes of answers longer than the first that are kept with outcomes in a partition; a tenant
   * alone gets half of them. Beyond this its writes are refused.
   */
  shortAnswerBytes: 512,
  longAnswersBytes: 64 * MiB,
  idempotencyTtlMs: 24 * hours,
  /**
   * Bytes of the answers to POSTs with an `Idempotency-Key` that are kept of a tenant for that
   * long: of some 9,000 starts, or 1,300 new VPN peers. Then its requests with a key are refused.
   */
  keptAnswersBytesPerTenant: 4 * MiB,
  /** Bytes that one counts for beside its texts. */
  keptAnswerBytes: 300,
  /** The period of hourly bounds: deletions, removed peers, new keys of a peer. */
  anHourMs: 1 * hours,
  tombstoneTtlMs: 7 * days,
  /**
   * Time for which the content of a file is kept that no container uses. A document that uses it
   * comes within the deadline of its request.
   */
  fileUnusedMs: 10 * minutes,
  /**
   * The default of the cap `deletes_per_hour`: so many for each container of the cap of containers,
   * within these bounds; the largest without such a cap. A tenant that has deleted more can create
   * no containers; it may delete at any time. In an hour it adds at most this many tombstones plus
   * its cap of containers, because all of these may end at once.
   *
   * A tombstone takes 340 bytes of the owner's memory and 160 in the bucket, and up to 800 and 530
   * with an `Idempotency-Key` of 255 characters (measured). A tenant with the default cap of 20
   * adds (300 + 20) × 24 = 7,680 a day: 2.6 MB, at most 6. After seven days of this, if no other
   * tenant does the same: 54,000, 18 MB, at most 43.
   */
  deletesPerHourPerCap: 15,
  deletesPerHourMin: 300,
  deletesPerHourMax: 5000,
  /**
   * Tombstones of a partition: beyond this, those of the tenant with the most end early, a day
   * after the deletion at the earliest. 68 MB, at most 160, for a partition; a process with all 16
   * has 1.1 GB, at most 2.6. It can have more only if its tenants add more than this in one day: 26
   * tenants with the default cap that do nothing else.
   */
  goneContainersPerPartition: 200_000,
  deleteMarkerTtlMs: 1 * hours,
  sweepIntervalMs: 1 * seconds,
  sweepChanges: 200,
  /** Containers that one sweep updates because a secret or a login of theirs has changed. */
  secretRollsPerSweep: 50,
  placementHistory: 32,
  /** Records that a sweep visits in one step (lib/time/slices.ts). */
  sweepStepRecords: 64,
  /** A process that missed this many sweeps was stopped, and heard no heartbeats meanwhile. */
  sweepsMissed: 3,
  /** One page of a load. */
  loadReadMessages: 500,
  loadReadBytes: 4 * MiB,
  /** The wait between two attempts to load a partition or to publish its events. */
  storeRetryMinMs: 100,
  storeRetryMaxMs: 5 * seconds,
} as const;
