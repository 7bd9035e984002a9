/** Log lines, from the engine to the stream LOGS. */
import { KiB, MiB, seconds, days } from './units.ts';

export const logs = {
  /**
   * The engine's own rotated files: the ring on the host's disk that holds lines until they are
   * captured.
   */
  engineLogFileSize: '10m',
  engineLogFiles: 3,
  logLineBytes: 16 * KiB,
  /** Bytes of a block, encoded as JSON. A single line that takes more is sent alone. */
  logBlockBytes: 64 * KiB,
  logBlockLines: 500,
  logBlockDelayMs: 200,
  logBlocksPerContainer: 1000,
  logAgeMs: 7 * days,
  logStreamBytes: 4 * 1024 * MiB,
  logAckTimeoutMs: 5 * seconds,
  logDrainMs: 5 * seconds,
  /** Attempts in a row to read the last lines of a container, before it is removed without them. */
  logDrainAttempts: 5,
  logSpoolBytes: 64 * MiB,
  /** With this much of one container read and not yet sent, an agent stops reading. */
  logQueueBytes: 256 * KiB,
  /** The time between two mentions of one container's rate in the agent's log. */
  logOverRateMentionMs: 60 * seconds,
  logFrameBytes: 1 * MiB,
  /**
   * A record of the engine's log files: a line of 16 KiB, each byte escaped, and labels of its own.
   */
  logRecordBytes: 256 * KiB,
  /** Bytes at the end of a record in which its time is. */
  logRecordTimeBytes: 64,
  /** Most bytes of one read of a log file. */
  logFileReadBytes: 256 * KiB,
  /** After so many bytes of a rotated file, the agent opens the next, so that it stays readable. */
  logFileLookBytes: 1 * MiB,
  /** The time between two reads of a log file that grows. */
  logFilePauseMs: 50,
  /**
   * A file that grew by more in that time is read again without waiting for a sign of the kernel.
   */
  logFileBusyBytes: 16 * KiB,
  /**
   * Interval at which a log file is read without such a sign, and one where the kernel gives none.
   */
  logFileIdleMs: 30 * seconds,
  logFileUnwatchedMs: 1 * seconds,
  /** Attempts to see the files of a log while the engine renames them. */
  logFileAttempts: 20,
  /** Logs in which the agent looks for its place at a time. */
  logReadersOpening: 8,
  logCursorFlushMs: 500,
} as const;
