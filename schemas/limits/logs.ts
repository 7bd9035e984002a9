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
  logBlocksPerContainer: 1000,
  logAgeMs: 7 * days,
  logStreamBytes: 4 * 1024 * MiB,
  logAckTimeoutMs: 5 * seconds,
  logDrainMs: 5 * seconds,
  logSpoolBytes: 64 * MiB,
  /** The size of one container's lines, read and not yet sent, at which an agent stops reading. */
  logQueueBytes: 256 * KiB,
  logFrameBytes: 1 * MiB,
  /** Bytes at the end of a record that contain its time. */
  logRecordTimeBytes: 64,
  /** The most bytes of one read of a log file. */
  logFileReadBytes: 256 * KiB,
  /** The time between two reads of a log file that grows. */
  logFilePauseMs: 50,
  /**
   * The intervals at which a log file is read without an event of the kernel: if it sends events,
   * and if it sends none.
   */
  logFileIdleMs: 30 * seconds,
  logFileUnwatchedMs: 1 * seconds,
  /** Attempts to list the files of a log while the engine renames them. */
  logFileAttempts: 20,
  /** Logs in which the agent searches for its place at a time. */
  logReadersOpening: 8,
} as const;
