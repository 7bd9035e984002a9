/** Backup and restore, run by an operator. */
import { seconds } from '../units.ts';

export const operations = {
  /** The deadline of any other request to JetStream. */
  backupRequestMs: 10 * seconds,
  /** A mark unchanged for this long belongs to an interrupted restore. */
  restoreMarkStillMs: 2 * seconds,
  /** The time to write the mark. */
  restoreMarkWriteMs: 5 * seconds,
} as const;
