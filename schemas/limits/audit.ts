/** The audit, and the stream AUDIT. */
import { MiB, seconds, days, minutes } from './units.ts';

export const audit = {
  auditAgeMs: 90 * days,
  /** About two million lines. */
  auditStreamBytes: 1024 * MiB,
  /** Texts that a client chose are cut to this length in a line, and its faults to this number. */
  auditTextChars: 256,
  auditFields: 20,
  /** Time that the answer to a refused write waits for its line; it goes without it then. */
  auditNoteMs: 2 * seconds,
  /** The same for the line of the end of a session, which nobody waits for. */
  auditLastNoteMs: 30 * seconds,
  /** Messages of the stream that one request looks at: filters may match few of them. */
  auditReadMessages: 2048,
  /** Such requests at a time. */
  auditReadsAtOnce: 8,
  /** Positions of the stream that a page looks at first; then more and more. */
  auditWindow: 256,
  /** A line is in the stream by then, however long the stream was away. */
  auditLateMs: 1 * days,
  /** Greatest lead of an owner's clock over that of the servers. */
  auditAheadMs: 5 * minutes,
  auditDefault: 100,
  auditMax: 500,
} as const;
