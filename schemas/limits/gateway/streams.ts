/** Server-Sent Events, waits, and the reads of JetStream streams behind them. */
import { KiB, seconds } from '../units.ts';

export const streams = {
  streamsPerTenant: 32,
  /** The default for one address: an office, or a proxy that names no clients, has many tenants. */
  streamsPerAddress: 1024,
  streams: 8192,
  streamHeartbeatMs: 15 * seconds,
  streamBufferBytes: 256 * KiB,
  streamPollMs: 2 * seconds,
  /** Interval at which a wait looks at the status while no doorbell rings. */
  waitPollMs: 1 * seconds,
  streamStalledMs: 60 * seconds,
  streamReadMs: 1.5 * seconds,
  streamReadAttempts: 4,
  waitDefaultSeconds: 30,
  waitMaxSeconds: 300,
  /** Time for which a container without a health check is up before it counts as done. */
  waitStableSeconds: 5,
  waitStableMaxSeconds: 300,
  /** The deadline of one ask to the owner by a stream or a wait. */
  watchAskMs: 5 * seconds,
  /** `Retry-After` if every place for streams is taken. */
  streamRetryAfterSeconds: 5,
  /** Memory for a log line besides its text, and for a tail: an estimate. */
  tailItemBytes: 64,
} as const;
