/** Gateway → owner of partitions: lanes, batches, attempts. */
import { KiB, seconds } from './units.ts';

export const rpc = {
  batchBytes: 768 * KiB,
  batchItems: 512,
  answerPartBytes: 768 * KiB,
  attemptMs: 1 * seconds,
  attemptMaxMs: 4 * seconds,
} as const;
