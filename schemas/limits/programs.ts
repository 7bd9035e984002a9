/** Parts that every program has: log, metrics, shutdown. */
import { seconds } from './units.ts';

export const programs = {
  /** Spans that wait for their receiver; more are dropped. One takes half a kilobyte. */
  traceQueuedSpans: 4096,
  traceBatchSpans: 512,
  /** Time that the first span of a batch waits for others; retries begin with twice that. */
  traceExportEveryMs: 1 * seconds,
  traceExportTimeoutMs: 5 * seconds,
  traceExportAttempts: 4,
  traceStopMs: 1 * seconds,
  /** Faults that one decoding names. */
  decodeErrors: 512,
  /** Time in which each part of a program stops: the listener of metrics, a NATS connection. */
  stopListenerMs: 2 * seconds,
  stopConnectionMs: 2 * seconds,
  /** A part that only ends a wait. */
  stopPartMs: 1 * seconds,
} as const;
