/**
 * Watches how full the engine's disk is, and triggers the removal of unused images: when it is too
 * full, and every hour of those unused for long. It has a loop of its own at a fixed pace, so that
 * a slow engine delays no check.
 */
import { statfs } from 'node:fs/promises';
import { every } from '../../lib/time/every.ts';
import type { Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import { fillOf, isPressed, restMs, type DiskFill, type Pressure } from './plan.ts';
import type { Faults } from '../faults.ts';

export interface DiskWatchParts {
  readonly isEngineUp: () => boolean;
  /**
   * The folder of the engine's data on this machine; `undefined` if it is unknown or on another
   * machine.
   */
  readonly rootDir: () => string | undefined;
  readonly images: {
    /** Removes one image after another while `goOn` resolves to true. */
    collect(goOn: () => Promise<boolean>): Promise<void>;
    /** Removes images that were unused for so long. */
    collectUnused(ms: number): Promise<void>;
  };
  readonly settings: {
    readonly DISK_INTERVAL: number;
    readonly DISK_PRESSURE_PERCENT: number;
    readonly IMAGES_HIGH_PERCENT: number;
    readonly IMAGES_LOW_PERCENT: number;
    readonly IMAGES_UNUSED: number;
  };
  readonly faults: Faults;
  readonly steadyMs: () => number;
  readonly log: Log;
}

export interface DiskWatch {
  run(signal: AbortSignal): Promise<void>;
  /** Checks once; starts a collection of images without waiting for it. */
  look(): Promise<void>;
  pressure(): Pressure;
  /** `null` if the engine's disk cannot be seen. */
  usedPercent(): number | null;
  /** `null` if the engine's disk cannot be seen. */
  freeBytes(): number | null;
}

export function createDiskWatch(parts: DiskWatchParts): DiskWatch {
  const { settings, steadyMs, log } = parts;
  let last: DiskFill | undefined;
  let pressure: Pressure = { isPressed: false, atMs: Number.NEGATIVE_INFINITY };
  let isCollecting = false;
  let collectAtMs = Number.NEGATIVE_INFINITY;
  // Not at once: after a start the agent may not know its desired set yet.
  let unusedAtMs = steadyMs() + limits.imagesUnusedLookMs;

  const fill = async (): Promise<DiskFill | undefined> => {
    const root = parts.rootDir();
    if (root === undefined) return undefined;
    // The engine is on another machine, or the agent may not read the folder.
    return statfs(root).then(fillOf, () => undefined);
  };

  const note = (seen: DiskFill | undefined, atMs: number): void => {
    last = seen;
    const { DISK_PRESSURE_PERCENT: from } = settings;
    const isNow = seen !== undefined && isPressed(seen, pressure.isPressed, from);
    if (isNow && !pressure.isPressed) {
      parts.faults.raise(
        'disk_pressure',
        `the disk of the engine is ${Math.floor(seen.usedPercent)} % full; containers over their limit are evicted: free space`,
      );
    }
    if (!isNow) parts.faults.clear('disk_pressure');
    pressure = { isPressed: isNow, atMs };
  };

  const collecting = async (collection: () => Promise<void>): Promise<void> => {
    isCollecting = true;
    try {
      await collection();
    } catch (error) {
      log.debug('images_collect_failed', { error });
    } finally {
      isCollecting = false;
    }
  };
  const makeRoom = async (): Promise<void> => {
    const startMs = steadyMs();
    try {
      await parts.images.collect(async () => {
        const now = await fill();
        return now !== undefined && now.usedPercent > settings.IMAGES_LOW_PERCENT;
      });
    } finally {
      collectAtMs = steadyMs() + restMs(steadyMs() - startMs, settings.DISK_INTERVAL);
    }
  };

  /** The collection to start now; `undefined` if none is due. */
  const dueCollection = (seen: DiskFill | undefined): (() => Promise<void>) | undefined => {
    const { IMAGES_HIGH_PERCENT: high, IMAGES_UNUSED: unusedMs } = settings;
    if (seen !== undefined && seen.usedPercent >= high) {
      return steadyMs() >= collectAtMs ? makeRoom : undefined;
    }
    if (unusedMs === 0 || steadyMs() < unusedAtMs) return undefined;
    unusedAtMs = steadyMs() + limits.imagesUnusedLookMs;
    return () => parts.images.collectUnused(unusedMs);
  };

  const look = async (): Promise<void> => {
    const startMs = steadyMs();
    const seen = await fill();
    note(seen, startMs);
    if (isCollecting || !parts.isEngineUp()) return;
    const collection = dueCollection(seen);
    if (collection !== undefined) void collecting(collection);
  };

  return {
    look,
    pressure: () => pressure,
    usedPercent: () => last?.usedPercent ?? null,
    freeBytes: () => last?.freeBytes ?? null,
    run: async (signal) => {
      await look();
      await every(() => Math.min(limits.diskLookMs, settings.DISK_INTERVAL), look, signal);
    },
  };
}
