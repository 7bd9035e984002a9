/** The command line and its client: how long it waits, and how often it tries. */
import { KiB, MiB, minutes, seconds } from './units.ts';

export const cli = {
  /** One attempt of a request; routes that make keys take up to a minute. */
  clientRequestMs: 75 * seconds,
  /** Beyond the `timeout` of a request that waits. */
  clientWaitMarginMs: 15 * seconds,
  /** Attempts of one request, and the pauses between them unless `Retry-After` says more. */
  clientAttempts: 5,
  clientRetryMinMs: 250,
  clientRetryMaxMs: 4 * seconds,
  /** A longer `Retry-After` is for a person to decide about. */
  clientRetryAfterMs: 30 * seconds,
  /** Requests of a wait in a row, each with all of its attempts, that the server did not answer. */
  clientWaitAttempts: 10,
  /** The longest question for a status; a longer wait asks again. */
  clientWaitSeconds: 60,
  /** A gateway sends something every 15 s; a stream that is silent for longer is opened again. */
  clientStreamSilentMs: 45 * seconds,
  /** Openings of a stream in a row that brought nothing. */
  clientStreamAttempts: 20,
  /** One line of a stream, as of an event with the longest message, and more. */
  clientFrameChars: 1 * MiB,
  /** An answer that is no JSON, such as that of a proxy, in an error for people. */
  clientErrorChars: 300,
  /** The time for a WebSocket to open. */
  clientSessionOpenMs: 20 * seconds,

  /** `run`, `update`, `start` and `stop`: how long they wait, and how often they look. */
  cliWaitSeconds: 300,
  cliWaitSecondsMax: 24 * 60 * 60,
  cliLookMs: 500,
  /**
   * Time for which a container without a health check must stay up, unless `--stable` says
   * otherwise.
   */
  cliStableSeconds: 5,
  cliStableSecondsMax: 300,
  /** The question whether a container that `apply` keeps is done already. */
  cliKeptLookMs: 1 * seconds,
  /** Lines of the log of one that failed, and the time for the first of them to arrive. */
  cliEndLines: 10,
  cliEndLogMs: 1 * seconds,
  /** `wait`: how often it looks whether the status can still come. */
  cliWaitLookMs: 5 * seconds,
  /** The manifest of a backup; one of 256 partitions has less than a tenth of it. */
  backupManifestBytes: 8 * MiB,
  /** Input from standard input or a file: a secret, a token, a file for `apply`. */
  cliInputBytes: 1 * MiB,
  cliInputMs: 5 * minutes,
  /**
   * `apply`: items of one kind in a file, files, faults shown, values with all aliases in full,
   * characters of a value, levels in a file, variables within variables.
   */
  applyItems: 200,
  applyFiles: 16,
  applyRemarks: 50,
  applyExpandedValues: 100_000,
  applyValueChars: 60,
  applyDepth: 100,
  applyVariableDepth: 16,
  /** `trace`: steps on the way of a request, and a log line. */
  traceMoments: 10_000,
  traceLineChars: 1 * MiB,
  /** `audit`: lines shown. */
  cliAuditLines: 10_000,
  cliAuditLinesDefault: 50,
  /** Requests under way at once, as for the stats of several containers. */
  cliParallel: 4,
  /** The beginning of an id names a container if it is this long. */
  cliPrefixChars: 4,
  /** Connections of one `forward` at once; a container has as many sessions at each gateway. */
  cliForwardConnections: 8,
  /** Connections of programs on this machine that wait to be accepted. */
  cliForwardBacklog: 64,
  /** Names for a completion, and the time to ask for them. */
  cliCompletionItems: 200,
  cliCompletionMs: 2 * seconds,
  /** `doctor`: one look at a server; a clock that is off, and a certificate that ends, too soon. */
  cliDoctorMs: 10 * seconds,
  cliDoctorClockMs: 30 * seconds,
  cliDoctorCertificateDays: 14,
  /** `keys`: open connections that a server names in one answer; days until credentials expire. */
  keysConnections: 256,
  keysDaysMax: 3660,
  /** A profile file. */
  cliProfileBytes: 256 * KiB,
  cliProfiles: 64,
} as const;
