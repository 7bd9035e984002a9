/** Parts that every program has: log, metrics, shutdown. */
import { seconds } from './units.ts';

export const programs = {
  /** Faults that one decoding names. */
  decodeErrors: 512,
  /** Time in which a NATS connection closes when a program stops. */
  stopConnectionMs: 2 * seconds,
  /** A part that only ends a wait. */
  stopPartMs: 1 * seconds,
} as const;
