/** Gateway → owner of partitions: lanes, batches, attempts. */
import { KiB, seconds } from './units.ts';

export const rpc = {
  /** Messages of a lane without any answer yet; messages under way with asks for one partition. */
  laneMessagesInFlight: 2,
  /** A message without an answer for so long leaves its place in the lane to others. */
  laneStallMs: 100,
  /** In each lane, for each partition. */
  laneQueuedItems: 10_000,
  batchBytes: 768 * KiB,
  batchItems: 512,
  answerPartBytes: 768 * KiB,
  attemptMs: 1 * seconds,
  attemptMaxMs: 4 * seconds,
  laneRetryMinMs: 10,
  laneRetryMaxMs: 500,
  /** If NATS has been away for longer than this, asks are refused at once. */
  natsAwayMs: 2 * seconds,
  /** Asks that reached their deadline are settled this often, and silence is noticed. */
  rpcSweepMs: 50,
} as const;
