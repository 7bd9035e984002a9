/** The audit, and the stream AUDIT. */
import { seconds, days, minutes } from './units.ts';

export const audit = {
  auditAgeMs: 90 * days,
  /** Texts that a client chose are cut to this length in a line, and its faults to this number. */
  auditTextChars: 256,
  auditFields: 20,
  /** Time that the answer to a refused write waits for its line; it goes without it then. */
  auditNoteMs: 2 * seconds,
  /** Greatest lead of an owner's clock over that of the servers. */
  auditAheadMs: 5 * minutes,
  auditDefault: 100,
  auditMax: 500,
} as const;
