/** Sessions between a gateway and a host: exec, forward, stats (ADR 39). */
import { KiB, seconds, minutes } from './units.ts';

export const sessions = {
  /** Output of a process that `POST /:id/runs` answers; more of it is read and left out. */
  runOutputBytes: 1024 * KiB,
  /**
   * Bytes that one end of a tunnel may send before the other has taken them. The client of a
   * WebSocket has the same.
   */
  tunnelWindowBytes: 256 * KiB,
  tunnelMessageBytes: 32 * KiB,
  tunnelControlBytes: 4 * KiB,
  /** A window that is given back in smaller parts costs a message for each. */
  tunnelCreditBytes: 64 * KiB,
  /** Interval at which ends look at the time, and whether the token of a session is still valid. */
  sessionLookMs: 250,
  /** One message of a WebSocket; its client has no window for more. */
  webSocketMessageBytes: 512 * KiB,
  /** A client without a sign of life for this long is gone. */
  webSocketSilentMs: 90 * seconds,
  /** Sessions of one gateway, of one tenant at one gateway, of one host, and of one container. */
  sessions: 512,
  sessionsPerTenant: 16,
  sessionsPerHost: 256,
  sessionsPerContainer: 8,
  /** A session in which nothing has passed for this long ends. */
  sessionIdleMs: 30 * minutes,
  /** The command of an exec, its user and its working directory. */
  execArguments: 64,
  execArgumentChars: 4096,
  execUserChars: 64,
  execWorkdirChars: 1024,
  /** Columns or rows of a terminal. */
  terminalSize: 4096,
  /** The characters of a reason that an end of a session gives. */
  sessionReasonChars: 1024,
} as const;
