/** Usage of containers: the agent's samples and sums, and the stream USAGE. */
import { MiB, seconds, hours, days } from './units.ts';

export const usage = {
  /** The grain of a bill. */
  usageHourMs: 1 * hours,
  /** Time for one answer of the engine. */
  usageSampleMs: 10 * seconds,
  /** Closed hours that no owner has taken yet, on the agent's disk: 35 days. */
  usageHoursKept: 35 * 24,
  /** Those of them that may wait in memory while the disk refuses their files: three days. */
  usageHoursUnwritten: 3 * 24,
  usageReportItems: 500,
  usageParts: 1024,
  /** Greatest age of the hour of a report. */
  usageAgeMs: 90 * days,
  /** Of a page of an operator's list. */
  usageRowsMax: 1000,
  usageStreamBytes: 2 * 1024 * MiB,
} as const;
