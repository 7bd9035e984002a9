/** Backup and restore, run by an operator. */
import { KiB, MiB, seconds, minutes } from '../units.ts';

export const operations = {
  /** One message of a stream that is saved or restored. */
  backupChunkBytes: 128 * KiB,
  /** Unacknowledged bytes of a stream that is saved: in flight, and in memory. */
  backupWindowBytes: 4 * MiB,
  /** For the next chunk, or its acknowledgement. */
  backupChunkMs: 30 * seconds,
  /**
   * The server reads the whole stream before its first answer (`jsck`), and again after a restore.
   */
  backupWholeMs: 10 * minutes,
  /** For any other request to JetStream. */
  backupRequestMs: 10 * seconds,
  /**
   * Attempts to send a chunk that no server takes yet. With the pause: less than the 5 s after
   * which a server gives up an idle restore.
   */
  restoreChunkAttempts: 80,
  restoreChunkPauseMs: 50,
  /** Looks for the leader of a restored stream. */
  restoreLeaderAttempts: 60,
  restoreLeaderPauseMs: 500,
  /** A restore waits this long for an actors process to answer, and refuses to run if one does. */
  restoreListenersMs: 1 * seconds,
  /** A restore renews its mark in the cluster record this often. */
  restoreMarkRenewMs: 500,
  /** A mark unchanged for this long belongs to a restore that has died. */
  restoreMarkStillMs: 2 * seconds,
  /** To write the mark. */
  restoreMarkWriteMs: 5 * seconds,
  /** Attempts to fence off and load a restored partition; its stream may lack a leader for now. */
  restoreAttempts: 20,
  restorePauseMs: 500,
} as const;
