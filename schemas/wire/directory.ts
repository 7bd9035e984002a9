/**
 * What actors processes tell one another about hosts, and the doorbell that they ring at one.
 */
import type { DirectoryEntry } from '../api/host.ts';
import type { HostKey } from '../ids.ts';

/**
 * Owner of a partition → every actors process: its hosts. `full`: all that it has; else those that
 * changed. Ordered by (epoch, revision).
 */
export interface DirectoryMessage {
  /** See version.ts. */
  readonly protocol?: number;
  readonly partition: number;
  readonly epoch: number;
  readonly revision: number;
  readonly full: boolean;
  /**
   * A full one that fits no message comes in parts, and counts when all are there. Absent: it is
   * the only one.
   */
  readonly part?: number;
  readonly parts?: number;
  readonly entries: readonly DirectoryEntry[];
  readonly removed: readonly HostKey[];
  /** In a full one: hosts whose record is damaged. Nothing is decided about what runs there. */
  readonly unreadable: readonly HostKey[];
}

/**
 * A doorbell says where to look, and for the sake of a log line whose request rang it; never what
 * is desired.
 */
export interface Doorbell {
  /** See version.ts. */
  readonly protocol?: number;
  readonly partition: number;
  readonly rid: string | null;
}
