/**
 * The desired set on disk: a file for each partition, and a log of what has changed since. The
 * agent works from it while the control plane is away, and after a reboot of the host. It holds the
 * tenants' environment variables, so only the agent can read it.
 */
import { join } from 'node:path';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { ContainerId } from '../../schemas/ids.ts';
import { DesiredContainer } from '../../schemas/wire/host.ts';
import { changed, emptyDesired, isOfVersion, isOlder, type DesiredSet, type PartitionSet } from './desired-set.ts';
import { createChangeLog, readChangeLog } from '../disk/change-log.ts';
import { readDecoded, removeFile, writeAtomically, type LazyFile } from '../disk/files.ts';
import type { StateDisk } from '../disk/state-disk.ts';

/**
 * Delay with which the desired set is written after a change: with others, where many containers
 * start.
 */
const desiredFlushMs = 100;

const Count = Type.Integer({ minimum: 0 });
const decodeCluster = decoder(
  Type.Object({ v: Type.Literal(1), cluster: Type.String(), partitions: Type.Integer({ minimum: 1, maximum: 1024 }) }),
);
const decodePartition = decoder(
  Type.Object({
    v: Type.Literal(1),
    cluster: Type.String(),
    epoch: Count,
    revision: Count,
    containers: Type.Array(DesiredContainer),
    hold: Type.Array(ContainerId),
    basis: Type.Optional(Type.String()),
  }),
);
const decodeChanges = decoder(
  Type.Object({
    v: Type.Literal(1),
    cluster: Type.String(),
    changes: Type.Array(
      Type.Object({
        partition: Count,
        /** The version that was changed; `null` if `containers` is the whole set. */
        since: Type.Union([Type.Object({ epoch: Count, revision: Count }), Type.Null()]),
        set: Type.Object({
          epoch: Count,
          revision: Count,
          /** The containers that were added or changed. */
          containers: Type.Array(DesiredContainer),
          hold: Type.Array(ContainerId),
          basis: Type.Optional(Type.String()),
        }),
        removed: Type.Array(ContainerId),
      }),
    ),
  }),
);
type Line = ReturnType<typeof decodeChanges>;
type Change = Line['changes'][number];
type Sets = ReadonlyMap<number, PartitionSet>;

export interface DesiredStore {
  load(): Promise<DesiredSet>;
  /** Writes what differs from the last saved or loaded set; returns at once. */
  save(desired: DesiredSet): void;
  flush(): Promise<void>;
}

export function createDesiredStore(stateDir: string, cluster: string, disk: StateDisk, log: Log): DesiredStore {
  const folder = join(stateDir, 'desired');
  const clusterPath = join(folder, 'cluster.json');
  const logPath = join(folder, 'changes.log');
  const partitionPath = (partition: number) => join(folder, `${partition}.json`);
  let current = emptyDesired(cluster);
  /** The content of the files of the partitions, and of the file of the cluster. */
  const filed = new Map<number, PartitionSet>();
  let filedPartitions: number | null = null;
  /** The sets as of the last line of the log. */
  let logged: Sets = new Map();
  let changeLog: LazyFile | undefined;

  const changes = (): Line | undefined => {
    const before = logged;
    logged = current.sets;
    const made = [...logged].flatMap(([partition, set]) => changeOf(partition, before.get(partition), set) ?? []);
    return made.length === 0 ? undefined : { v: 1, cluster, changes: made };
  };
  const writeWhole = async (): Promise<void> => {
    const { partitions, sets } = current;
    if (partitions !== filedPartitions) {
      await writeAtomically(clusterPath, JSON.stringify({ v: 1, cluster, partitions }));
      filedPartitions = partitions;
    }
    for (const partition of filed.keys()) {
      // A change to it was lost, and its owner has not answered yet.
      if (sets.has(partition)) continue;
      await removeFile(partitionPath(partition));
      filed.delete(partition);
    }
    for (const [partition, set] of sets) {
      if (filed.get(partition) === set) continue;
      await writeAtomically(partitionPath(partition), JSON.stringify({ ...set, v: 1, cluster }));
      filed.set(partition, set);
    }
  };

  return {
    load: async () => {
      const known = await readDecoded(clusterPath, decodeCluster, log);
      const isOurs = known?.cluster === cluster;
      for (let partition = 0; isOurs && partition < known.partitions; partition++) {
        const set = await readDecoded(partitionPath(partition), decodePartition, log);
        if (set?.cluster !== cluster) continue;
        const { epoch, revision, containers, hold, basis } = set;
        filed.set(partition, { epoch, revision, containers, hold, ...(basis === undefined ? {} : { basis }) });
      }
      const read = await readChangeLog(logPath, decodeChanges, log);
      const lines = read.lines.filter((line) => line.cluster === cluster);
      // The content of a damaged line is unknown, so the log has no known last state.
      logged = isOurs && read.end !== 'damaged' ? withChanges(filed, lines) : new Map();
      if (isOurs) {
        filedPartitions = known.partitions;
        current = { ...current, partitions: known.partitions, sets: logged };
      }
      changeLog = createChangeLog({
        path: logPath,
        changes,
        writeWhole,
        bytes: read.bytes,
        // Without the file of the cluster, the next start would ignore the log.
        isWholeDue: read.end !== 'whole' || !isOurs,
        intervalMs: desiredFlushMs,
        disk,
      });
      return current;
    },
    save: (desired) => {
      current = desired;
      changeLog?.touch();
    },
    flush: async () => changeLog?.flush(),
  };
}

/** `undefined` if nothing has changed. */
function changeOf(partition: number, before: PartitionSet | undefined, set: PartitionSet): Change | undefined {
  if (before === set) return undefined;
  const { containers, ...rest } = set;
  const known = new Map(before?.containers.map((container) => [container.id, container]));
  const news = containers.filter((container) => known.get(container.id) !== container);
  for (const { id } of containers) known.delete(id);
  const since = before === undefined ? null : { epoch: before.epoch, revision: before.revision };
  return { partition, since, set: { ...rest, hold: [...rest.hold], containers: news }, removed: [...known.keys()] };
}

/**
 * Changes that the files contain already are passed over. So are those of a set that is missing:
 * its file could not be read.
 */
function withChanges(filed: Sets, lines: readonly Line[]): Sets {
  const sets = new Map(filed);
  for (const { partition, since, set, removed } of lines.flatMap(({ changes }) => changes)) {
    const held = sets.get(partition);
    if (since === null) {
      if (held === undefined || isOlder(held, set)) sets.set(partition, set);
    } else if (held !== undefined && isOfVersion(held, since)) {
      sets.set(partition, changed(held, set, removed));
    } else if (held !== undefined && isOlder(held, set)) {
      // A change between the two is missing.
      sets.delete(partition);
    }
  }
  return sets;
}
