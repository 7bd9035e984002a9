/**
 * The record that makes a cluster one: bucket `cluster`, key `cluster`. Every program checks it at
 * start.
 */
import Type, { type Static } from 'typebox';

export const Cluster = Type.Object({
  /** UUID; the label by which an agent knows its own containers (invariant A4). */
  id: Type.String({ minLength: 1, maxLength: 64 }),
  partitions: Type.Integer({ minimum: 1, maximum: 256 }),
  /** Of the stored records. A program that does not know it refuses to run. */
  format: Type.Literal(1),
  /**
   * When it was last restored, in milliseconds since 1970; rises with each restore. Whoever joined
   * an earlier one has seen what is no more. 0 or absent: never.
   */
  incarnation: Type.Optional(Type.Integer({ minimum: 0 })),
  /**
   * For each partition, what is added to its epochs where they are told. Absent: nothing, never
   * restored.
   */
  epochBases: Type.Optional(Type.Array(Type.Integer())),
});
export type Cluster = Static<typeof Cluster>;

/**
 * In place of the record while a restore is under way: no program may take what is there for a
 * cluster. It is written again and again by the restore, which ends where somebody else writes it.
 */
export const Restoring = Type.Object({ restoring: Type.Literal(true), renewal: Type.Integer({ minimum: 0 }) });
export type Restoring = Static<typeof Restoring>;

/** What may stand under the key. */
export const ClusterEntry = Type.Union([Cluster, Restoring]);
export type ClusterEntry = Static<typeof ClusterEntry>;

export const isRestoring = (entry: ClusterEntry): entry is Restoring => 'restoring' in entry;

export const clusterKey = 'cluster';

export const incarnationOf = ({ incarnation }: Cluster): number => incarnation ?? 0;

/** False: what was joined is gone, and what is there now has another past. */
export const isSameCluster = (left: Cluster, right: Cluster): boolean =>
  left.id === right.id && incarnationOf(left) === incarnationOf(right);

/**
 * A partition's epoch as hosts and other processes are told it. In its bucket an epoch is a
 * revision, by which the server fences; a restore takes revisions back, and agents never take an
 * older epoch.
 */
export const announcedEpoch = ({ epochBases }: Cluster, partition: number, revision: number): number =>
  (epochBases?.[partition] ?? 0) + revision;

/**
 * More revisions than a stream makes in a millisecond; times the milliseconds since 1970 it is a
 * safe integer until 2109.
 */
const revisionsPerMs = 2 ** 11;

/**
 * The record of a cluster that was restored now, from buckets that ended at these revisions. Every
 * epoch that was told by a time T is below `T × revisionsPerMs`, for so far is the clock ahead of
 * any stream; what is told from now on is above that, whichever backup was restored, and whatever
 * was told since it was made.
 */
export function restoredCluster(
  backedUp: Cluster,
  present: Cluster | undefined,
  lastRevisions: readonly number[],
  nowMs: number,
): Cluster {
  const incarnation = Math.max(
    Math.floor(nowMs) + 1,
    incarnationOf(backedUp) + 1,
    present === undefined ? 0 : incarnationOf(present) + 1,
  );
  const epochBases = lastRevisions.map((last) => incarnation * revisionsPerMs - last);
  return { ...backedUp, incarnation, epochBases };
}
