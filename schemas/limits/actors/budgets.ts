/** Budgets of hosts, tenants and containers in the streams LOGS and EVENTS. */
import { KiB, seconds } from '../units.ts';

export const budgets = {
  budgetIntervalMs: 5 * seconds,
  /**
   * Parts of a stream's limit: above the first, the largest users are trimmed down to the second.
   */
  budgetFrom: 0.75,
  budgetTo: 0.6,
  budgetRequestMs: 5 * seconds,
  /** Pages of STREAM.INFO with subjects; the server puts 100,000 subjects into one. */
  budgetSubjectPages: 20,
  /**
   * Subjects of a stream: above the first bound, hosts with more than their share are trimmed,
   * however few bytes they have.
   */
  budgetSubjects: 1_000_000,
  budgetSubjectsPerHost: 100_000,
  /**
   * Tenants of a host, which are at most its containers; messages of further ones count for no
   * tenant.
   */
  budgetTenantsPerHost: 1000,
  /**
   * Messages that are read for their sizes, each at a random place of the stream, and how many at a
   * time.
   */
  budgetSamples: 256,
  budgetSamplesAtOnce: 16,
  budgetSampleBytes: 128 * KiB,
  /**
   * Parts of a host or tenant that are trimmed separately; if more are over their share, the whole
   * is trimmed.
   */
  budgetCuts: 2000,
  /** Messages that one purge removes. */
  budgetPurgeMessages: 10_000,
  /** Invalid names of tenants whose messages are purged for one host in one check. */
  budgetNamelessPurges: 100,
} as const;
