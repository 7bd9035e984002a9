/** Decides what to measure next, and which containers have written too much. Pure. */
import type { ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { minutes } from '../../schemas/limits/units.ts';

/**
 * The time in which a container that was evicted under pressure disappears, before the next is
 * evicted.
 */
export const diskReliefMs = 2 * minutes;
/** Pressure is over when the use of the disk is this much below the threshold. */
export const diskReliefPercent = 5;

export interface DiskLimit {
  readonly bytes: number;
  /** `false` if no limit was declared: such containers are evicted under pressure only. */
  readonly isEnforced: boolean;
}

/** The smaller of the declared limit and the host's. */
export function diskLimitOf({ disk_bytes: declared }: { disk_bytes?: number }, hostBytes: number): DiskLimit {
  return { bytes: Math.min(declared ?? hostBytes, hostBytes), isEnforced: declared !== undefined };
}

/** The outcome of the attempts to measure one container, or the volumes. */
export interface Attempts {
  /** `true` if the last attempt took longer than `limits.diskMeasureMs`. */
  readonly isLate: boolean;
  /** Failures in a row, of any kind. */
  readonly failures: number;
  /** The end of the last attempt; `null` before the first. */
  readonly endedAtMs: number | null;
  readonly tookMs: number;
}

export const untried: Attempts = { isLate: false, failures: 0, endedAtMs: null, tookMs: 0 };

export type AttemptOutcome = 'measured' | 'late' | 'failed';

export const attempted = (
  before: Attempts,
  outcome: AttemptOutcome,
  startedAtMs: number,
  endedAtMs: number,
): Attempts => ({
  isLate: outcome === 'late',
  failures: outcome === 'measured' ? 0 : before.failures + 1,
  endedAtMs,
  tookMs: endedAtMs - startedAtMs,
});

/** The use is unknown after one late attempt, or after a few refusals in a row. */
export const isUnknown = ({ isLate, failures }: Attempts): boolean => isLate || failures >= limits.hostFaultTries;

/** A slow measurement repeats less often, and takes at most a tenth of the time. */
export const restMs = (tookMs: number, intervalMs: number): number => Math.max(intervalMs, 9 * tookMs);

export const dueAtMs = ({ endedAtMs, tookMs }: Attempts, intervalMs: number): number =>
  endedAtMs === null ? Number.NEGATIVE_INFINITY : endedAtMs + restMs(tookMs, intervalMs);

/** A container that the engine has, running or not: what it wrote stays until it is removed. */
export interface Measured {
  readonly id: ContainerId;
  readonly dockerId: string;
  readonly tenant: string;
  /** As last measured; `null` before the first measurement. */
  readonly written: { readonly layerBytes: number; readonly volumes: readonly string[] } | null;
  readonly attempts: Attempts;
}

/** The engine measures all volumes at once. */
export interface MeasuredVolumes {
  /** As last measured, by name. */
  readonly bytes: ReadonlyMap<string, number>;
  readonly attempts: Attempts;
}

export const hasVolumes = ({ written }: Measured): boolean => (written?.volumes.length ?? 0) > 0;

/**
 * Time spent on measuring a tenant's containers; it halves with each `limits.diskIntervalMs`.
 */
export interface Spent {
  readonly ms: number;
  readonly atMs: number;
}

export const spentMs = ({ ms, atMs }: Spent, nowMs: number): number =>
  ms * 0.5 ** (Math.max(0, nowMs - atMs) / limits.diskIntervalMs);

export interface Turn {
  readonly nowMs: number;
  readonly intervalMs: number;
  readonly isPressed: boolean;
  /** Tenants one of whose containers is being measured. */
  readonly busy: ReadonlySet<string>;
  /** Time recently spent on a tenant. */
  readonly spentMs: (tenant: string) => number;
}

/**
 * The container to measure now: one of a tenant at a time, and first of the tenant that took the
 * least time, so that a slow tenant delays only its own. Within a tenant, the longest due; under
 * pressure, the largest.
 */
export function nextToMeasure(containers: Iterable<Measured>, turn: Turn): Measured | undefined {
  let first: Measured | undefined;
  let firstSpentMs = 0;
  let firstUrgency = 0;
  for (const each of containers) {
    const { attempts, tenant } = each;
    if (dueAtMs(attempts, turn.intervalMs) > turn.nowMs || turn.busy.has(tenant)) continue;
    const spent = turn.spentMs(tenant);
    const urgency = urgencyOf(each, turn);
    const isBefore = spent === firstSpentMs ? urgency > firstUrgency : spent < firstSpentMs;
    if (first !== undefined && !isBefore) continue;
    first = each;
    firstSpentMs = spent;
    firstUrgency = urgency;
  }
  return first;
}

/** Bytes under pressure; otherwise the time since the last measurement. */
const urgencyOf = ({ written, attempts }: Measured, { isPressed, nowMs }: Turn): number =>
  isPressed
    ? (written?.layerBytes ?? Number.MAX_SAFE_INTEGER)
    : nowMs - (attempts.endedAtMs ?? -Number.MAX_SAFE_INTEGER);

/** The disk use of a container: its writable layer and its image's volumes. */
export interface DiskUse {
  readonly id: ContainerId;
  readonly dockerId: string;
  /** `null` if the measurement did not end in time. */
  readonly usedBytes: number | null;
  readonly limitBytes: number;
  readonly isEnforced: boolean;
}

/** `undefined` if it is not measured yet. */
export function useOf(container: Measured, volumes: MeasuredVolumes, limit: DiskLimit): DiskUse | undefined {
  const { id, dockerId, written, attempts } = container;
  const use = { id, dockerId, limitBytes: limit.bytes, isEnforced: limit.isEnforced };
  if (attempts.isLate) return { ...use, usedBytes: null };
  if (written === null) return undefined;
  // Volumes keep their last known size: another container's volume may be what delays the
  // measurement.
  const isVolumeLate = volumes.attempts.isLate && written.volumes.some((name) => !volumes.bytes.has(name));
  if (isVolumeLate) return { ...use, usedBytes: null };
  return {
    ...use,
    usedBytes: written.volumes.reduce((sum, name) => sum + (volumes.bytes.get(name) ?? 0), written.layerBytes),
  };
}

export interface Evictions {
  /** Over an enforced limit: all are stopped. */
  readonly over: readonly DiskUse[];
  /** Within their limit. */
  readonly within: readonly DiskUse[];
  /**
   * Stopped only under pressure, one at a time: those that cannot be measured in time, then those
   * over their limit, the largest first.
   */
  readonly underPressure: readonly DiskUse[];
}

export function evictionsOf(uses: readonly DiskUse[]): Evictions {
  const late = uses.filter(({ usedBytes }) => usedBytes === null);
  const over = uses
    .filter(({ usedBytes, limitBytes }) => usedBytes !== null && usedBytes > limitBytes)
    .toSorted((left, right) => (right.usedBytes ?? 0) - (left.usedBytes ?? 0));
  return {
    over: over.filter(({ isEnforced }) => isEnforced),
    within: uses.filter(({ usedBytes, limitBytes }) => usedBytes !== null && usedBytes <= limitBytes),
    underPressure: [...late, ...over.filter(({ isEnforced }) => !isEnforced)],
  };
}

/** The fill of the engine's disk, as last checked. */
export interface Pressure {
  readonly isPressed: boolean;
  readonly atMs: number;
}

/** An eviction under pressure; the next waits for its effect. */
export interface Relief {
  readonly dockerId: string;
  readonly atMs: number;
  /** The time at which the container was first seen down; `null` before that. */
  readonly downAtMs: number | null;
}

/** `true` until a check of the disk after the stop, or until the stop takes too long. */
export const isAwaited = ({ atMs, downAtMs }: Relief, pressure: Pressure, nowMs: number): boolean =>
  downAtMs === null ? nowMs < atMs + diskReliefMs : pressure.atMs <= downAtMs;

const inMiB = (bytes: number): string => `${Math.ceil(bytes / 1024 / 1024)} MiB`;

export const evictionWords = ({ usedBytes, limitBytes }: Pick<DiskUse, 'usedBytes' | 'limitBytes'>): string =>
  usedBytes === null
    ? `what it wrote could not be measured in ${limits.diskMeasureMs / 1000} s while the host's disk was nearly full, ` +
      `and counts as more than its limit of ${inMiB(limitBytes)}: ${kept}`
    : `it wrote ${inMiB(usedBytes)} to the host's disk, and its limit is ${inMiB(limitBytes)}: ${kept}`;

const kept =
  'it is stopped and keeps its data; it starts again when it has less, or when its limit is raised. ' +
  'To delete data, start it: it runs until the next measurement';

/** The message of the host fault while limits cannot be enforced; `undefined` if there is none. */
export function unmeasuredWords(ids: readonly ContainerId[], volumes: MeasuredVolumes): string | undefined {
  if (ids.length > 0) {
    const named = ids.slice(0, 3).join(', ') + (ids.length > 3 ? ` and ${ids.length - 3} more` : '');
    return `cannot measure what these containers wrote, so their limits are not kept: ${named}; look for millions of files in them, or for a slow disk`;
  }
  return isUnknown(volumes.attempts)
    ? 'cannot measure volumes, so limits are not kept there: look for a volume with millions of files, or for a slow disk'
    : undefined;
}

/** Fill of the file system with the engine's data: the scarcer of bytes and inodes. */
export interface DiskFill {
  readonly usedPercent: number;
  /** Bytes that users other than root may still write. */
  readonly freeBytes: number;
}

/** From statfs(2). File systems with dynamic inodes report none. */
export function fillOf(stat: {
  blocks: number;
  bavail: number;
  bsize: number;
  files: number;
  ffree: number;
}): DiskFill {
  const used = (all: number, free: number): number => (all > 0 ? (100 * (all - free)) / all : 0);
  return {
    usedPercent: Math.max(used(stat.blocks, stat.bavail), used(stat.files, stat.ffree)),
    freeBytes: stat.bavail * stat.bsize,
  };
}

/** A disk is under pressure from the threshold up, until it falls some percent below. */
export const isPressed = (
  { usedPercent }: Pick<DiskFill, 'usedPercent'>,
  wasPressed: boolean,
  fromPercent: number,
): boolean => usedPercent >= fromPercent - (wasPressed ? diskReliefPercent : 0);
