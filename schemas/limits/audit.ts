/** The audit, and the stream AUDIT. */
import { seconds, days } from './units.ts';

export const audit = {
  auditAgeMs: 90 * days,
  /** Texts that a client chose are cut to this length in a line. */
  auditTextChars: 256,
  /** Time that the answer to a refused write waits for its line; it goes without it then. */
  auditNoteMs: 2 * seconds,
  auditDefault: 100,
  auditMax: 500,
} as const;
