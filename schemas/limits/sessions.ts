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
  /** Control messages that may be sent before the other end has dealt with them. */
  tunnelWindowControls: 64,
  tunnelMessageBytes: 32 * KiB,
  tunnelControlBytes: 4 * KiB,
  /** A window that is given back in smaller parts costs a message for each. */
  tunnelCreditBytes: 64 * KiB,
  /** An end that has sent nothing for this long says that it is there. */
  tunnelBeatMs: 3 * seconds,
  /** An end that has heard nothing for this long takes the other for gone. */
  tunnelSilentMs: 10 * seconds,
  /** Interval at which ends look at the time, and whether the token of a session is still valid. */
  sessionLookMs: 250,
  /** Requests under way of one agent: anyone who can make it hear a ring could cause them. */
  sessionFetches: 32,
  /**
   * One message of a WebSocket; its client has no window for more. The room for what a client has
   * not read yet: a window, and the frames around it.
   */
  webSocketMessageBytes: 512 * KiB,
  webSocketBufferBytes: 1024 * KiB,
  /** The time between two pings, and after how long without a sign of life a client is gone. */
  webSocketPingMs: 30 * seconds,
  webSocketSilentMs: 90 * seconds,
  webSocketIdleMs: 120 * seconds,
  /** Sessions of one gateway, of one tenant at one gateway, of one host, and of one container. */
  sessions: 512,
  sessionsPerTenant: 16,
  sessionsPerHost: 256,
  sessionsPerContainer: 8,
  /** An older sample answers no request. */
  statsFreshMs: 2 * seconds,
  /** A follower whose container does not run asks its owner no more often than this. */
  statsLookMs: 1 * seconds,
  /**
   * Time that a request waits for the next run of a container that its owner calls running, and the
   * interval of its looks.
   */
  statsSwapMs: 3 * seconds,
  statsSwapLookMs: 250,
  /** A session in which nothing has passed for this long ends. */
  sessionIdleMs: 30 * minutes,
  /** The command of an exec, its user and its working directory. */
  execArguments: 64,
  execArgumentChars: 4096,
  execUserChars: 64,
  /** Part of the first output of an exec that is looked at for a fault of the engine. */
  execFaultBytes: 1 * KiB,
  execWorkdirChars: 1024,
  /** Looks for the processes below one before they are killed. */
  killLooks: 8,
  /** Columns or rows of a terminal. */
  terminalSize: 4096,
  /** Bytes of the reason in a close frame of a WebSocket. */
  closeReasonBytes: 123,
  /** The characters of a reason that an end of a session gives. */
  sessionReasonChars: 1024,
} as const;
