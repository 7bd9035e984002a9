/**
 * The capacity of this host, from its settings, else from its engine or its kernel; and its free
 * ports and disk. Pure.
 */
import type { Capacity } from '../../schemas/api/host.ts';
import { limits } from '../../schemas/limits.ts';
import type { HostRoom } from '../../schemas/wire/host.ts';

export interface Machine {
  readonly cores: number;
  readonly memBytes: number;
}

export interface CapacitySettings {
  readonly CAPACITY_CPU_MILLIS: number | undefined;
  readonly CAPACITY_MEM_BYTES: number | undefined;
  readonly CAPACITY_CONTAINERS: number;
  readonly CPU_OVERCOMMIT: number;
}

/** The rest is for the host itself: kernel, engine, agent. */
const memShare = 0.9;

export const capacityOf = (given: CapacitySettings, { cores, memBytes }: Machine): Capacity => ({
  cpu_millis: given.CAPACITY_CPU_MILLIS ?? Math.floor(cores * 1000 * given.CPU_OVERCOMMIT),
  mem_bytes: given.CAPACITY_MEM_BYTES ?? Math.floor(memBytes * memShare),
  containers: given.CAPACITY_CONTAINERS,
});

/** The room as heartbeats carry it; `null` means unknown. */
export const roomOf = (ports: number | null, diskBytes: number | null): HostRoom => ({
  ...(ports === null ? {} : { ports }),
  ...(diskBytes === null ? {} : { disk_bytes: diskBytes - (diskBytes % limits.roomDiskStepBytes) }),
});
