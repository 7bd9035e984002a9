/** The command line and its client. */
import { MiB, seconds } from './units.ts';

export const cli = {
  /** Pauses between attempts of a request or a stream, unless `Retry-After` says more. */
  clientRetryMinMs: 250,
  clientRetryMaxMs: 4 * seconds,
  /** An answer that is no JSON, such as that of a proxy, in an error for people. */
  clientErrorChars: 300,

  /** `run`, `update`, `start` and `stop`: the longest wait, and the pause between looks. */
  cliWaitSecondsMax: 24 * 60 * 60,
  cliLookMs: 500,
  /**
   * Time for which a container without a health check must stay up, unless `--stable` says
   * otherwise.
   */
  cliStableSeconds: 5,
  cliStableSecondsMax: 300,
  /** Input from standard input or a file: a secret, a token, a file for `apply`. */
  cliInputBytes: 1 * MiB,
  /** `apply`: files that a Compose file names, values after all aliases, levels of a file. */
  applyNamedFiles: 64,
  applyExpandedValues: 100_000,
  applyDepth: 100,
  /** Requests under way at once, as for the stats of several containers. */
  cliParallel: 4,
  /** Names for a completion, and the time to ask for them. */
  cliCompletionItems: 200,
  cliCompletionMs: 2 * seconds,
} as const;
