/** Scrub: replicas compared with one another. */
import { MiB, seconds, minutes } from '../units.ts';

export const scrub = {
  scrubIntervalMs: 10 * minutes,
  scrubPageMessages: 256,
  scrubPageBytes: 1 * MiB,
  scrubReadMs: 2 * seconds,
} as const;
