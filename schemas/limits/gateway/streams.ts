/** Server-Sent Events, waits, and the reads of JetStream streams behind them. */
import { KiB, seconds } from '../units.ts';

export const streams = {
  streamsPerTenant: 32,
  /**
   * Of one address, unless an operator says otherwise: an office, or a proxy that names no clients,
   * has many tenants.
   */
  streamsPerAddress: 1024,
  streams: 8192,
  streamHeartbeatMs: 15 * seconds,
  streamBufferBytes: 256 * KiB,
  streamPollMs: 2 * seconds,
  /** How often a wait looks at the status while no doorbell rings. */
  waitPollMs: 1 * seconds,
  /** Between a ring that had nothing to show yet and the next look. */
  streamSettleMs: 100,
  streamStalledMs: 60 * seconds,
  streamReadMs: 1.5 * seconds,
  /** A question to JetStream that actors hand on. */
  readAskBytes: 1 * KiB,
  streamReadAttempts: 4,
  streamReadMessages: 64,
  waitDefaultSeconds: 30,
  waitMaxSeconds: 300,
  /** For one look of a stream or wait at the owner. */
  watchAskMs: 5 * seconds,
  /** `Retry-After` where every seat for streams is taken. */
  streamRetryAfterSeconds: 5,
  /** A client waits this long before it resumes a stream (`retry:`). */
  streamRetryMs: 2 * seconds,
  /** The last lines are looked for in a window of this length, then in longer and longer ones. */
  tailWindowMs: 4 * seconds,
  tailWindowGrowth: 8,
} as const;
