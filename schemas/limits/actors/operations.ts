/** Backup and restore, run by an operator. */
import { days, KiB, MiB, minutes, seconds } from '../units.ts';

export const operations = {
  /** Bytes of one message of a stream that is saved or restored. */
  backupChunkBytes: 128 * KiB,
  /** Unacknowledged bytes of a stream that is being saved, in flight and in memory. */
  backupWindowBytes: 4 * MiB,
  /** The wait for the next chunk, or its acknowledgement. */
  backupChunkMs: 30 * seconds,
  /**
   * The wait for the first answer, before which the server reads the whole stream (`jsck`), and for
   * that after a restore.
   */
  backupWholeMs: 10 * minutes,
  /** The deadline of any other request to JetStream. */
  backupRequestMs: 10 * seconds,
  /**
   * Attempts to send a chunk that no server accepts yet. With the pauses they take less than the 5
   * s after which a server gives up an idle restore.
   */
  restoreChunkAttempts: 80,
  restoreChunkPauseMs: 50,
  /** Attempts to find the leader of a restored stream. */
  restoreLeaderAttempts: 60,
  restoreLeaderPauseMs: 500,
  /** A restore waits this long for an actors process to answer, and refuses to run if one does. */
  restoreListenersMs: 1 * seconds,
  /** A restore renews its mark in the cluster record this often. */
  restoreMarkRenewMs: 500,
  /** A mark unchanged for this long belongs to an interrupted restore. */
  restoreMarkStillMs: 2 * seconds,
  /** The time to write the mark. */
  restoreMarkWriteMs: 5 * seconds,
  /** Attempts to fence off and load a restored partition; its stream may lack a leader for now. */
  restoreAttempts: 20,
  /** The time to seal a restored journal. */
  restoreJournalMs: 30 * seconds,
  restorePauseMs: 500,
  /**
   * nats-server 2.15 compresses a snapshot in blocks of this size, and gives up a restore when one
   * takes it this long.
   */
  snapshotBlockBytes: 1 * MiB,
  restoreBlockMs: 5 * seconds,
  /** Messages that show how long a server takes to store one, and room for them. */
  restoreProbeMessages: 32,
  restoreProbeBytes: 64 * KiB,
  /**
   * Time that a restore waits for hosts to say what they have seen, and the interval of its rings.
   */
  restoreHostsMs: 6 * seconds,
  restoreHostsRingMs: 1 * seconds,
  /** Hosts that the output names. */
  restoreHostsNamed: 20,
  /** No host is believed that has seen a restore so long after the clock and the backup. */
  restoreAheadMs: 10 * 365 * days,
} as const;
