/** Which containers have written too much, and when to look again. Pure. */
import type { ContainerId } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';

/** What a container has written: its writable layer and the volumes that its image names. */
export interface DiskUse {
  readonly id: ContainerId;
  readonly dockerId: string;
  readonly usedBytes: number;
  readonly limitBytes: number;
  /** False for what was declared before there were limits: it is evicted under pressure alone. */
  readonly isEnforced: boolean;
}

/** Those over an enforced limit; under pressure also the largest of the others that are over. */
export function evictionsOf(uses: readonly DiskUse[], isPressed: boolean): DiskUse[] {
  const over = uses
    .filter(({ usedBytes, limitBytes }) => usedBytes > limitBytes)
    .toSorted((left, right) => right.usedBytes - left.usedBytes);
  const spared = over.find(({ isEnforced }) => !isEnforced);
  return over.filter((use) => use.isEnforced || (isPressed && use === spared));
}

export interface DiskLimit {
  readonly bytes: number;
  readonly isEnforced: boolean;
}

/** The lesser of what was declared and what the host allows. */
export function diskLimitOf({ disk_bytes: declared }: { disk_bytes?: number }, hostBytes: number): DiskLimit {
  return { bytes: Math.min(declared ?? hostBytes, hostBytes), isEnforced: declared !== undefined };
}

const inMiB = (bytes: number): string => `${Math.ceil(bytes / 1024 / 1024)} MiB`;

export const wroteTooMuch = (usedBytes: number, limitBytes: number): string =>
  `it wrote ${inMiB(usedBytes)} to the host's disk, and its limit is ${inMiB(limitBytes)}: what it wrote is removed`;

/** Of the file system with the engine's data; the scarcer of bytes and inodes. */
export interface DiskFill {
  readonly usedPercent: number;
}

/** Of statfs(2). File systems that make inodes as they need them count none. */
export function fillOf(stat: { blocks: number; bavail: number; files: number; ffree: number }): DiskFill {
  const used = (all: number, free: number): number => (all > 0 ? (100 * (all - free)) / all : 0);
  return { usedPercent: Math.max(used(stat.blocks, stat.bavail), used(stat.files, stat.ffree)) };
}

/** A disk is under pressure from the threshold on, until it is some percent below. */
export const isPressed = ({ usedPercent }: DiskFill, wasPressed: boolean, fromPercent: number): boolean =>
  usedPercent >= fromPercent - (wasPressed ? limits.diskReliefPercent : 0);

/** A measurement that takes long is repeated less often, so that it never takes more than a tenth of the time. */
export const restMs = (tookMs: number, intervalMs: number): number => Math.max(intervalMs, 9 * tookMs);
