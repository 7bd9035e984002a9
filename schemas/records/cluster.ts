/**
 * The cluster's identity: bucket `cluster`, key `cluster`. Every program checks it at start.
 */
import Type, { type Static } from 'typebox';

/**
 * Streams that a restore has yet to bring; nothing reads them to serve. The cluster serves without
 * them meanwhile, and only the restore creates them.
 */
export const History = Type.Object({
  streams: Type.Array(Type.String()),
  /** Backup, named by the time in its manifest. */
  takenAt: Type.String(),
  /** By partition: its last restored journal entry; `null` if the partition did not load. */
  lastEntries: Type.Array(Type.Union([Type.Integer({ minimum: 0 }), Type.Null()])),
});
export type History = Static<typeof History>;

export const Cluster = Type.Object({
  /** UUID; the label by which an agent knows its own containers (invariant A4). */
  id: Type.String({ minLength: 1, maxLength: 64 }),
  partitions: Type.Integer({ minimum: 1, maximum: 256 }),
  /** Format of the stored records. A program that does not know it refuses to run. */
  format: Type.Literal(1),
  /**
   * Time of the last restore, in milliseconds since 1970; rises with each restore. A program that
   * joined an earlier incarnation may have seen records that no longer exist. 0 or absent if it was
   * never restored.
   */
  incarnation: Type.Optional(Type.Integer({ minimum: 0 })),
  /** Range in which containers get IPv4 addresses, as CIDR. Absent if they get none. */
  tenantIpv4: Type.Optional(Type.String()),
  /** Absent if release 0.1.0 or one before it made the cluster (`refusalOf`). */
  journals: Type.Optional(Type.Boolean()),
  /** By partition: added to its epoch to announce it. Absent if the cluster was never restored. */
  epochBases: Type.Optional(Type.Array(Type.Integer())),
  /** Absent if no restore has yet to bring streams. */
  history: Type.Optional(History),
});
export type Cluster = Static<typeof Cluster>;

/**
 * Takes the record's place during a restore, so that no program joins a cluster that is not yet
 * whole. The restore renews it, and stops if it finds that another program wrote it.
 */
export const Restoring = Type.Object({
  restoring: Type.Literal(true),
  renewal: Type.Integer({ minimum: 0 }),
  /** Random id of the restore. Absent in one of an older release. */
  by: Type.Optional(Type.String()),
  /** The id of the cluster that is being restored. */
  cluster: Type.Optional(Type.String()),
  /** The restored incarnation is above it, also if the restore is run again. */
  above: Type.Optional(Type.Integer({ minimum: 0 })),
});
export type Restoring = Static<typeof Restoring>;

/** The value of `clusterKey`. */
export const ClusterEntry = Type.Union([Cluster, Restoring]);
export type ClusterEntry = Static<typeof ClusterEntry>;

/** Reason why this release does not read the cluster; `undefined` if it does. */
export const refusalOf = ({ journals }: Cluster): string | undefined =>
  journals === true
    ? undefined
    : 'release 0.1.0 or an older one made this cluster, and this release reads clusters that 0.2.0 made: start a new ' +
      'one on empty NATS servers, or restore a backup of one that 0.2.0 made there (docs/upgrades.md)';

export const isRestoring = (entry: ClusterEntry): entry is Restoring => 'restoring' in entry;

export const clusterKey = 'cluster';

export const incarnationOf = ({ incarnation }: Cluster): number => incarnation ?? 0;

/** False when another cluster, or another restore of it, has replaced the one that was joined. */
export const isSameCluster = (left: Cluster, right: Cluster): boolean =>
  left.id === right.id && incarnationOf(left) === incarnationOf(right);

/**
 * A partition's epoch as hosts and other processes see it. In the bucket an epoch is a revision,
 * which the server fences by. A restore takes revisions back, and an agent ignores an older epoch.
 */
export const announcedEpoch = ({ epochBases }: Cluster, partition: number, revision: number): number =>
  (epochBases?.[partition] ?? 0) + revision;

/**
 * More revisions than a stream makes in a millisecond. Multiplied by the milliseconds since 1970
 * it is a safe integer until 2109.
 */
const revisionsPerMs = 2 ** 11;

/** The incarnation that an announced epoch is of, or a later one: never an earlier one. */
export const incarnationOfEpoch = (epoch: number): number => Math.max(0, Math.floor(epoch / revisionsPerMs));

/**
 * An incarnation such that no epoch of the cluster is above those of the next.
 * @param lastRevisions by partition: the last revision of its bucket
 */
export const usedIncarnation = (cluster: Cluster, lastRevisions: readonly number[]): number =>
  lastRevisions.reduce(
    (most, last, partition) => Math.max(most, incarnationOfEpoch(announcedEpoch(cluster, partition, last))),
    incarnationOf(cluster),
  );

/**
 * The record of a cluster that is restored now from buckets that ended at these revisions. Every
 * epoch announced before time T is below `T × revisionsPerMs`, because no stream makes revisions so
 * fast. Every epoch announced from now on is above that, whichever backup was restored, and above
 * every epoch of the backup and of `aboveMs`, should the clock be behind.
 */
export function restoredCluster(
  backedUp: Cluster,
  present: Cluster | undefined,
  lastRevisions: readonly number[],
  /** The incarnation is above it: the time now, or an incarnation that programs have seen. */
  aboveMs: number,
): Cluster {
  const incarnation = Math.max(
    Math.floor(aboveMs) + 1,
    usedIncarnation(backedUp, lastRevisions) + 1,
    present === undefined ? 0 : incarnationOf(present) + 1,
  );
  const epochBases = lastRevisions.map((last) => incarnation * revisionsPerMs - last);
  return { ...backedUp, incarnation, epochBases };
}
