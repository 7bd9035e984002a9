/**
 * The desired set on disk, one file for each partition. The agent works from it while the control
 * plane is away, and after a reboot of the host. It holds the tenants' environment variables, so
 * only the agent can read it.
 */
import { join } from 'node:path';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { ContainerId } from '../../schemas/ids.ts';
import { DesiredContainer } from '../../schemas/wire/host.ts';
import { emptyDesired, type DesiredSet, type PartitionSet } from './desired.ts';
import { createLazyFile, readDecoded, type LazyFile } from '../disk/files.ts';
import type { StateDisk } from '../disk/state-disk.ts';

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
  }),
);

export interface DesiredStore {
  load(): Promise<DesiredSet>;
  /** Writes what differs from the last saved or loaded set; returns at once. */
  save(desired: DesiredSet): void;
  flush(): Promise<void>;
}

export function createDesiredStore(stateDir: string, cluster: string, disk: StateDisk, log: Log): DesiredStore {
  const folder = join(stateDir, 'desired');
  const clusterPath = join(folder, 'cluster.json');
  const partitionPath = (partition: number) => join(folder, `${partition}.json`);
  const files = new Map<string, LazyFile>();
  let current = emptyDesired(cluster);

  const touch = (path: string, content: () => string): void => {
    const file = files.get(path) ?? createLazyFile(path, content, 0, disk);
    files.set(path, file);
    file.touch();
  };

  const load = async (): Promise<DesiredSet> => {
    const known = await readDecoded(clusterPath, decodeCluster, log);
    if (known === undefined || known.cluster !== cluster) return current;
    const sets = new Map<number, PartitionSet>();
    for (let partition = 0; partition < known.partitions; partition++) {
      const set = await readDecoded(partitionPath(partition), decodePartition, log);
      if (set?.cluster === cluster) sets.set(partition, set);
    }
    current = { ...current, partitions: known.partitions, sets };
    return current;
  };

  const save = (desired: DesiredSet): void => {
    const before = current;
    current = desired;
    if (desired.partitions !== before.partitions) {
      touch(clusterPath, () => JSON.stringify({ v: 1, cluster, partitions: current.partitions }));
    }
    for (const [partition, set] of desired.sets) {
      if (before.sets.get(partition) === set) continue;
      touch(partitionPath(partition), () => JSON.stringify({ ...current.sets.get(partition), v: 1, cluster }));
    }
  };

  return {
    load,
    save,
    flush: async () => {
      await Promise.all([...files.values()].map((file) => file.flush()));
    },
  };
}
