/** The position of a reader in an engine's log files. */

/** The state of a stream that its next record depends on. */
export interface StreamPlace {
  readonly ts: string;
  readonly nth: number;
  /** `true` if the last record had no newline: its line continues in the next. */
  readonly isOpen: boolean;
}

/** A position between two records of a file. */
export interface FilePlace {
  /** Identifies the file, by device and inode. */
  readonly file: string;
  readonly offset: number;
  /** The time of the record before it; empty at the beginning of a log. */
  readonly ts: string;
  readonly stdout: StreamPlace;
  readonly stderr: StreamPlace;
}

const unread: StreamPlace = { ts: '', nth: 0, isOpen: false };
export const beginning = (file: string, offset = 0): FilePlace => ({
  ...{ file, offset, ts: '' },
  ...{ stdout: unread, stderr: unread },
});
