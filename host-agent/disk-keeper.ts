/**
 * Keeps the disk of the engine from filling up: measures what each container has written, evicts those over their limit,
 * and has unused images removed. A storage driver with quotas stops a container sooner; few hosts have one, and none
 * counts volumes. One measurement at a time, and ever less often where it takes long.
 */
import { statfs } from 'node:fs/promises';
import { sleep } from '../lib/backoff.ts';
import type { Log } from '../lib/log.ts';
import { limits } from '../schemas/limits.ts';
import { isContainerId, type ContainerId } from '../schemas/ids.ts';
import { evictionsOf, fillOf, isPressed, restMs, type DiskFill, type DiskLimit, type DiskUse } from './disk-plan.ts';
import type { Engine } from './docker/engine.ts';
import type { Faults } from './faults.ts';
import type { ImageCollector } from './images.ts';
import type { Metrics } from './metrics.ts';
import { labels } from './observed.ts';
import { ownerLabels, type Owner } from './spec.ts';

export interface DiskKeeperParts {
  readonly engine: Engine;
  readonly owner: Owner;
  readonly isEngineUp: () => boolean;
  /** Folder of the engine's data on this machine; undefined where it is not known, or is on another machine. */
  readonly rootDir: () => string | undefined;
  readonly limitOf: (id: ContainerId) => DiskLimit;
  readonly evict: (use: DiskUse) => void;
  readonly images: ImageCollector;
  readonly settings: {
    readonly DISK_INTERVAL_MS: number;
    readonly DISK_PRESSURE_PERCENT: number;
    readonly IMAGES_HIGH_PERCENT: number;
    readonly IMAGES_LOW_PERCENT: number;
  };
  readonly faults: Faults;
  readonly metrics: Pick<Metrics, 'diskEviction'>;
  readonly steadyMs: () => number;
  readonly log: Log;
}

export interface DiskKeeper {
  run(signal: AbortSignal): Promise<void>;
  /** Null where the engine's disk cannot be seen. */
  usedPercent(): number | null;
}

export function createDiskKeeper(parts: DiskKeeperParts): DiskKeeper {
  const { engine, settings, steadyMs, log } = parts;
  let last: DiskFill | undefined;
  let pressed = false;
  let measureAtMs = 0;
  let collectAtMs = 0;
  let unmeasured = 0;

  const look = async (): Promise<DiskFill | undefined> => {
    const root = parts.rootDir();
    if (root === undefined) return undefined;
    // The folder of an engine elsewhere, or one that the agent may not see.
    return statfs(root).then(fillOf, () => undefined);
  };

  const note = (fill: DiskFill | undefined): void => {
    last = fill;
    const before = pressed;
    const { DISK_PRESSURE_PERCENT: from } = settings;
    pressed = fill !== undefined && from < 100 && isPressed(fill, before, from);
    if (pressed && !before) {
      measureAtMs = 0;
      parts.faults.raise(
        'disk_pressure',
        `the disk of the engine is ${Math.floor(fill?.usedPercent ?? 0)} % full; containers over their limit are evicted: free space`,
      );
    }
    if (!pressed) parts.faults.clear('disk_pressure');
  };

  const collect = async (fill: DiskFill | undefined): Promise<void> => {
    const { IMAGES_HIGH_PERCENT: high, IMAGES_LOW_PERCENT: low } = settings;
    if (fill === undefined || high === 100 || fill.usedPercent < high || steadyMs() < collectAtMs) return;
    const startMs = steadyMs();
    try {
      await parts.images.collect(async () => {
        const now = await look();
        return now !== undefined && now.usedPercent > low;
      });
    } catch (error) {
      log.debug('images_not_collected', { error });
    } finally {
      collectAtMs = steadyMs() + restMs(steadyMs() - startMs, settings.DISK_INTERVAL_MS);
    }
  };

  const measureOne = async (
    dockerId: string,
    id: ContainerId,
  ): Promise<(DiskUse & { volumes: string[] }) | undefined> => {
    const written = await engine.written(dockerId);
    if (written === undefined) return undefined;
    const { bytes, isEnforced } = parts.limitOf(id);
    return { id, dockerId, usedBytes: written.layerBytes, limitBytes: bytes, isEnforced, volumes: written.volumes };
  };

  const measure = async (signal: AbortSignal): Promise<DiskUse[]> => {
    const listed = await engine.list(ownerLabels(parts.owner));
    const uses: (DiskUse & { volumes: string[] })[] = [];
    let failures = 0;
    for (const { Id, State, Labels } of listed) {
      const id = Labels?.[labels.container] ?? '';
      if (State !== 'running' || !isContainerId(id) || signal.aborted) continue;
      try {
        const use = await measureOne(Id, id);
        if (use !== undefined) uses.push(use);
      } catch (error) {
        failures += 1;
        log.debug('disk_use_unknown', { container: id, error });
      }
    }
    let bytes: ReadonlyMap<string, number> = new Map();
    try {
      if (uses.some(({ volumes }) => volumes.length > 0)) bytes = await engine.volumeBytes();
    } catch (error) {
      // The layers that were measured count all the same.
      failures += 1;
      log.debug('volume_use_unknown', { error });
    }
    noteUnmeasured(failures);
    return uses.map(({ volumes, ...use }) => ({
      ...use,
      usedBytes: volumes.reduce((sum, name) => sum + (bytes.get(name) ?? 0), use.usedBytes),
    }));
  };

  const noteUnmeasured = (failures: number): void => {
    unmeasured = failures === 0 ? 0 : unmeasured + 1;
    if (unmeasured === 0) parts.faults.clear('disk_unmeasured');
    if (unmeasured < limits.hostFaultTries) return;
    const what = `${failures} measurements of what containers wrote failed, so limits are not kept`;
    parts.faults.raise('disk_unmeasured', `${what}; look for millions of files in one, or for a slow disk`);
  };

  const pass = async (signal: AbortSignal): Promise<void> => {
    const fill = await look();
    note(fill);
    await collect(fill);
    if (steadyMs() < measureAtMs) return;
    const startMs = steadyMs();
    try {
      for (const use of evictionsOf(await measure(signal), pressed)) {
        parts.metrics.diskEviction();
        const { id: container, usedBytes, limitBytes } = use;
        log.warn('disk_limit', { container, usedBytes, limitBytes, isPressed: pressed });
        parts.evict(use);
      }
    } finally {
      measureAtMs = steadyMs() + restMs(steadyMs() - startMs, pressed ? limits.diskLookMs : settings.DISK_INTERVAL_MS);
    }
  };

  return {
    usedPercent: () => last?.usedPercent ?? null,
    run: async (signal) => {
      // A measurement may take long, and the agent does not wait for it to stop.
      const ended = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      while (!signal.aborted) {
        await sleep(Math.min(limits.diskLookMs, settings.DISK_INTERVAL_MS), signal);
        if (signal.aborted || !parts.isEngineUp()) continue;
        try {
          await Promise.race([pass(signal), ended]);
        } catch (error) {
          log.debug('disk_look_failed', { error });
        }
      }
    },
  };
}
