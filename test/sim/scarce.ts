/**
 * Bounds that are reached within seconds: those of production, smaller in about the same
 * proportion. The model of JetStream takes its own from there, too.
 */
import { limits } from '../../schemas/limits.ts';
import { KiB } from '../../schemas/limits/units.ts';

const scarce = {
  // Bounds of a server's messages, and those that follow from them.
  natsPayloadBytes: 64 * KiB,
  natsBatchMessages: 36,
  checkpointBatchMessages: 20,
  eventsFreedPerBatch: 8,
  batchItems: 12,
  checkpointBatchBytes: 96 * KiB,
  // A commit, and the journal: a ring that is full within a run.
  journalEntryBytes: 48 * KiB,
  turnBytes: 24 * KiB,
  recordBytes: 20 * KiB,
  journalSlots: 64,
  journalBytes: 512 * KiB,
  journalReadWindow: 16,
  uncheckpointedBytes: 128 * KiB,
  checkpointDueBytes: 40 * KiB,
  uncommittedBytes: 256 * KiB,
  // Data that waits for a stream that is away.
  eventsParkedBytes: 24 * KiB,
  eventsParkedKeyBytes: 2 * KiB,
  eventsSettlingBytes: 12 * KiB,
  // Answers that wait for a commit.
  answersWaiting: 30,
  answersWaitingOfTenant: 10,
  answersWaitingBytes: 64 * KiB,
  answersWaitingBytesOfTenant: 16 * KiB,
  // Pages of a load.
  loadReadMessages: 20,
} as const satisfies Partial<Record<keyof typeof limits, number>>;

/** The most bytes of the variables of a container, and as many as no message holds. */
export const variables = { most: 4 * KiB, tooMany: 70 * KiB } as const;

/** Runs the body with these bounds in place of the usual ones. */
export async function withScarceLimits<T>(body: () => Promise<T>): Promise<T> {
  const usual = { ...limits };
  Object.assign(limits, scarce);
  try {
    return await body();
  } finally {
    Object.assign(limits, usual);
  }
}
