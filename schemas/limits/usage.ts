/** Usage of containers: the agent's samples and sums, and the stream USAGE. */
import { MiB, seconds, minutes, hours, days } from './units.ts';

export const usage = {
  /** The grain of a bill. */
  usageHourMs: 1 * hours,
  /** Runs of one container at a time, at most. */
  usageRunsAtOnce: 2,
  /** The wait for one answer of the engine; and for the one before a stop. */
  usageSampleMs: 10 * seconds,
  usageLastSampleMs: 1 * seconds,
  /**
   * A container whose cgroup can't be read and that still runs after so many looks has not lost its
   * first process: the engine tells of an end sooner.
   */
  oomLooksUnread: 30,
  /** An hour is closed so long after its end, when every run was sampled since. */
  usageHourGraceMs: 2 * minutes,
  /** Closed hours that no owner has taken yet, on the agent's disk: 35 days. */
  usageHoursKept: 35 * 24,
  /** Those of them that may wait in memory while the disk refuses their files: three days. */
  usageHoursUnwritten: 3 * 24,
  /**
   * With a larger difference between the wall clock and machine time, the wall clock was set.
   * Machine time is known to 10 ms, and a busy process reads the two some time apart.
   */
  usageClockStepMs: 250,
  /** Settings of the wall clock that are remembered within a boot. */
  usageClockSpans: 8,
  usageReportItems: 500,
  usageReportTimeoutMs: 5 * seconds,
  /** Containers of one message of the stream. With 24 hours each, that is about 300 KiB. */
  usagePartContainers: 256,
  usageParts: 1024,
  /** Greatest lead of the hour of a report over the owner's clock, and its greatest age. */
  usageAheadMs: 1 * hours,
  usageAgeMs: 90 * days,
  /** Of a page of an operator's list. */
  usageRowsMax: 1000,
  usageStreamBytes: 2 * 1024 * MiB,
} as const;
