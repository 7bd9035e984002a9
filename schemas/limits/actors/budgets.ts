/** Budgets of hosts, tenants and containers in the streams LOGS and EVENTS. */
import { KiB, seconds } from '../units.ts';

export const budgets = {
  budgetIntervalMs: 5 * seconds,
  /**
   * Of a stream's limit: above the first, the largest are trimmed until it is down to the second.
   */
  budgetFrom: 0.75,
  budgetTo: 0.6,
  budgetRequestMs: 5 * seconds,
  /** Of STREAM.INFO with subjects; the server puts 100,000 into one. */
  budgetSubjectPages: 20,
  /**
   * Of a stream: above it, hosts that have more than their part are trimmed, however few their
   * bytes.
   */
  budgetSubjects: 1_000_000,
  budgetSubjectsPerHost: 100_000,
  /** Of a host with more tenants than it can have containers, the rest is counted as nobody's. */
  budgetTenantsPerHost: 1000,
  /**
   * Messages that are read for their sizes, each at a random place of the stream, and so many of
   * them at a time.
   */
  budgetSamples: 256,
  budgetSamplesAtOnce: 16,
  budgetSampleBytes: 128 * KiB,
  /**
   * Parts of one that are trimmed apart; where more are over their share, it is trimmed as a whole.
   */
  budgetCuts: 2000,
  /** Of one purge. */
  budgetPurgeMessages: 10_000,
  /** Tenants' names that are none, of one host, that are removed at one look. */
  budgetNamelessPurges: 100,
} as const;
