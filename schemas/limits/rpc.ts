/** Gateway → owner of a partition: lanes, batches, attempts. */
import { KiB, seconds } from './units.ts';

export const rpc = {
  laneMessagesInFlight: 2,
  /** Waits and streams poll through a lane of their own. */
  watchLaneMessagesInFlight: 1,
  laneQueuedItems: 10_000,
  batchBytes: 768 * KiB,
  batchItems: 512,
  answerPartBytes: 768 * KiB,
  attemptMs: 1 * seconds,
  attemptMaxMs: 4 * seconds,
  laneRetryMinMs: 10,
  laneRetryMaxMs: 500,
  /** A gateway is ready when the owner of a partition has answered it within this time. */
  gatewayAnsweredMs: 7.5 * seconds,
  /** An idle gateway probes a partition this often. */
  gatewayProbeMs: 1 * seconds,
  gatewayProbeDeadlineMs: 5 * seconds,
  /** If NATS has been away for longer than this, asks are refused at once. */
  natsAwayMs: 2 * seconds,
  /** Asks that reached their deadline are settled this often. */
  rpcSweepMs: 50,
} as const;
