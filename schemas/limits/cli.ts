/** The command line and its client: how long it waits, and how often it tries. */
import { KiB, MiB, minutes, seconds } from './units.ts';

export const cli = {
  /** Attempts of one request, and the pauses between them unless `Retry-After` says more. */
  clientAttempts: 5,
  clientRetryMinMs: 250,
  clientRetryMaxMs: 4 * seconds,
  /** Requests of a wait in a row, each with all of its attempts, that the server did not answer. */
  clientWaitAttempts: 10,
  /** The longest question for a status; a longer wait asks again. */
  clientWaitSeconds: 60,
  /** Openings of a stream in a row that brought nothing. */
  clientStreamAttempts: 20,
  /** An answer that is no JSON, such as that of a proxy, in an error for people. */
  clientErrorChars: 300,

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
  /** The manifest of a backup; one of 256 partitions has less than a tenth of it. */
  backupManifestBytes: 8 * MiB,
  /** Input from standard input or a file: a secret, a token, a file for `apply`. */
  cliInputBytes: 1 * MiB,
  cliInputMs: 5 * minutes,
  /**
   * `apply`: items of one kind in a file, files, files that a Compose file names, faults shown,
   * values with all aliases in full, characters of a value, levels in a file, variables within
   * variables.
   */
  applyItems: 200,
  applyFiles: 16,
  applyNamedFiles: 64,
  applyRemarks: 50,
  applyExpandedValues: 100_000,
  applyValueChars: 60,
  applyDepth: 100,
  applyVariableDepth: 16,
  /** Requests under way at once, as for the stats of several containers. */
  cliParallel: 4,
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
