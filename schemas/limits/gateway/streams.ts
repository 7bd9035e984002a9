/** Server-Sent Events, waits, and the reads of JetStream streams behind them. */
import { KiB, MiB, seconds } from '../units.ts';

export const streams = {
  streamsPerTenant: 32,
  /** The default for one address: an office, or a proxy that names no clients, has many tenants. */
  streamsPerAddress: 1024,
  streams: 8192,
  streamHeartbeatMs: 15 * seconds,
  streamBufferBytes: 256 * KiB,
  /**
   * Bytes of metadata that a client's stream of events remembers, and those that each container
   * takes beside its labels.
   */
  followedMetadataBytes: 32 * KiB,
  followedContainerBytes: 128,
  streamPollMs: 2 * seconds,
  /** Interval at which a wait looks at the status while no doorbell rings. */
  waitPollMs: 1 * seconds,
  /** The wait between a ring that had nothing to show yet and the next read. */
  streamSettleMs: 100,
  streamStalledMs: 60 * seconds,
  streamReadMs: 1.5 * seconds,
  /** The size of a request to JetStream that actors forward. */
  readAskBytes: 1 * KiB,
  streamReadAttempts: 4,
  streamReadMessages: 64,
  waitDefaultSeconds: 30,
  waitMaxSeconds: 300,
  /** Time for which a container without a health check is up before it counts as done. */
  waitStableSeconds: 5,
  waitStableMaxSeconds: 300,
  /** The deadline of one ask to the owner by a stream or a wait. */
  watchAskMs: 5 * seconds,
  /** `Retry-After` if every place for streams is taken. */
  streamRetryAfterSeconds: 5,
  /**
   * The newest log lines that a gateway keeps, and again the newest events, and the time after
   * which it reads all of them again. The bytes of an event, of its author, and of a line besides
   * its text, are estimates.
   */
  tailFreshMs: 10 * seconds,
  tailBytes: 32 * MiB,
  tails: 10_000,
  tailItemBytes: 64,
  tailEventBytes: 1 * KiB,
  tailAuthorBytes: 0.5 * KiB,
} as const;
