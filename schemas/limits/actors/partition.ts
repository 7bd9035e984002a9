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
  /**
   * Messages of the stream before the seal that a reader of a journal looks at first, and how this
   * grows while there is no entry among them.
   */
  journalReadWindow: 512,
  journalReadGrowth: 8,
  /**
   * Bytes of the records that one turn may change. With its events, its lines and its outcome it
   * has at most `journalEntryBytes`.
   */
  turnBytes: 384 * KiB,
  journalEntryBytes: 768 * KiB,
  /** Bytes of one stored record; it still fits into an entry that is half full. */
  recordBytes: 320 * KiB,
  turnsQueued: 20_000,
  /**
   * Bytes of changes that wait for the journal, and of the answers to them, in a partition; then
   * its writes are refused. A tenant alone has half of it, as of `turnsQueued`.
   */
  uncommittedBytes: 32 * MiB,
  /**
   * Reads, syncs and repeated writes that wait for a commit, of a partition and of one tenant or
   * host; further ones are refused.
   */
  answersWaiting: 20_000,
  answersWaitingOfTenant: 5000,
  /**
   * Bytes of the answers to these, which one more answer may exceed. The rest are made when the
   * commit is there.
   */
  answersWaitingBytes: 16 * MiB,
  answersWaitingBytesOfTenant: 4 * MiB,
  /** After this long without an acknowledgement the owner writes again, under a new epoch. */
  commitTimeoutMs: 1 * seconds,
  /** Attempts of a load, and their pause, while the replica that answered lacks the own epoch. */
  loadTailAttempts: 4,
  loadTailMinMs: 20,
  loadTailMaxMs: 200,
  /** The pause between two such series of one process. */
  loadRestMinMs: 5 * seconds,
  loadRestMaxMs: 5 * minutes,
  /** Time for which long work runs before it yields to the event loop. */
  sliceMs: 20,
  /**
   * Time for which the work for messages runs in the turn of the event loop in which they arrive;
   * the rest waits for a slice.
   */
  atOnceMs: 10,
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
  operationTtlMs: 2 * minutes,
  idempotencyTtlMs: 24 * hours,
  /**
   * Bytes of the answers to POSTs with an `Idempotency-Key` that are kept of a tenant for that
   * long: of some 9,000 starts, or 1,300 new VPN peers. Then its requests with a key are refused.
   */
  keptAnswersBytesPerTenant: 4 * MiB,
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
  sweepIntervalMs: 1 * seconds,
  sweepChanges: 200,
  /** Containers that one sweep updates because a secret or a login of theirs has changed. */
  secretRollsPerSweep: 50,
  placementHistory: 32,
  /** One page of a load. */
  loadReadMessages: 500,
  loadReadBytes: 4 * MiB,
  /** The wait between two attempts to load a partition or to publish its events. */
  storeRetryMinMs: 100,
  storeRetryMaxMs: 5 * seconds,
} as const;
