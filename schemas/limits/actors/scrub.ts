/** Scrub: replicas compared with one another. */
import { seconds, minutes } from '../units.ts';

export const scrub = {
  scrubIntervalMs: 10 * minutes,
  scrubReadMs: 2 * seconds,
} as const;
