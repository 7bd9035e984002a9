/** Backup and restore, run by an operator. */
import { KiB, MiB, seconds, minutes } from '../units.ts';

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
} as const;
