/**
 * Measures what each container has written, and stops containers over their limit until they are
 * within it again; no limit deletes data (ADR 46). A storage driver with quotas stops a container
 * sooner, but few hosts have one, and none counts volumes. Each container is measured at its own
 * pace (plan.ts), so a slow measurement delays no other.
 */
import { aborted, withAbort } from '../../lib/time/backoff.ts';
import { every } from '../../lib/time/every.ts';
import type { Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import {
  attempted,
  dueAtMs,
  evictionsOf,
  hasVolumes,
  isAwaited,
  isUnknown,
  nextToMeasure,
  spentMs,
  unmeasuredWords,
  untried,
  useOf,
  type AttemptOutcome,
  type DiskLimit,
  type DiskUse,
  type Measured,
  type MeasuredVolumes,
  type Pressure,
  type Relief,
  type Spent,
} from './plan.ts';
import type { CachedEngine, KnownContainer } from '../docker/cached-engine.ts';
import { EngineError } from '../docker/errors.ts';
import type { Faults } from '../faults.ts';
import type { Metrics } from '../metrics.ts';

/** Measurements at a time, of containers of different tenants or of the volumes. */
const diskMeasurements = 2;

export interface EvictorParts {
  readonly engine: Pick<CachedEngine, 'containers' | 'written' | 'volumeBytes'>;
  readonly isEngineUp: () => boolean;
  readonly pressure: () => Pressure;
  readonly limitOf: (id: ContainerId) => DiskLimit;
  /** @returns `false` if it is stopped already, or must stay as it is */
  readonly evict: (use: DiskUse) => boolean;
  /** Called for a container that is within its limit again. */
  readonly relieve: (use: DiskUse) => void;
  readonly settings: { readonly DISK_INTERVAL: number };
  readonly faults: Faults;
  readonly metrics: Pick<Metrics, 'diskEviction'>;
  readonly steadyMs: () => number;
  readonly log: Log;
}

export interface Evictor {
  run(signal: AbortSignal): Promise<void>;
  /** Lists the engine's containers, and starts the measurements that are due. */
  look(signal: AbortSignal): Promise<void>;
  /** The number of containers that cannot be measured. */
  unknown(): number;
}

/** Containers that have written nothing yet, or are being removed. */
const notMeasured: ReadonlySet<string> = new Set(['created', 'removing', 'dead']);

export function createEvictor(parts: EvictorParts): Evictor {
  const { engine, settings, steadyMs, log } = parts;
  const containers = new Map<string, Measured>();
  /** By the engine's id: containers that cannot be measured, and containers with volumes. */
  const unmeasured = new Map<string, ContainerId>();
  const withVolumes = new Set<string>();
  let tracked: readonly KnownContainer[] = [];
  /** The tenants of containers that are being measured, by the engine's id. */
  const measuring = new Map<string, string>();
  const spent = new Map<string, Spent>();
  let volumes: MeasuredVolumes = { bytes: new Map(), attempts: untried };
  let isMeasuringVolumes = false;
  let relief: Relief | undefined;
  /** The time of the last comparison of all containers with their limits. */
  let comparedAtMs = Number.NEGATIVE_INFINITY;

  const intervalMs = (): number =>
    parts.pressure().isPressed ? Math.min(limits.diskLookMs, settings.DISK_INTERVAL) : settings.DISK_INTERVAL;
  const spentOn = (tenant: string, nowMs: number): number => {
    const on = spent.get(tenant);
    return on === undefined ? 0 : spentMs(on, nowMs);
  };
  const put = (container: Measured): void => {
    const { dockerId, id, attempts } = container;
    containers.set(dockerId, container);
    if (isUnknown(attempts)) unmeasured.set(dockerId, id);
    else unmeasured.delete(dockerId);
    if (hasVolumes(container)) withVolumes.add(dockerId);
    else withVolumes.delete(dockerId);
  };
  const forget = (dockerId: string): void => {
    containers.delete(dockerId);
    unmeasured.delete(dockerId);
    withVolumes.delete(dockerId);
  };

  const track = (known: readonly KnownContainer[]): void => {
    tracked = known;
    const gone = new Set(containers.keys());
    for (const { dockerId, id, tenant, state } of known) {
      if (state !== undefined && notMeasured.has(state)) continue;
      gone.delete(dockerId);
      if (!containers.has(dockerId)) put({ id, dockerId, tenant, written: null, attempts: untried });
    }
    for (const dockerId of gone) forget(dockerId);
  };

  const isUp = (asked: string): boolean =>
    tracked.some(({ dockerId, state }) => dockerId === asked && state !== 'exited');

  const tidy = (): void => {
    const nowMs = steadyMs();
    for (const tenant of spent.keys()) if (spentOn(tenant, nowMs) < 1) spent.delete(tenant);
    if (withVolumes.size === 0) volumes = { bytes: new Map(), attempts: untried };
    if (relief?.downAtMs === null && !isUp(relief.dockerId)) relief = { ...relief, downAtMs: nowMs };
  };

  const evict = (use: DiskUse): boolean => {
    if (!parts.evict(use)) return false;
    parts.metrics.diskEviction();
    const { id: container, usedBytes, limitBytes } = use;
    log.warn('disk_limit_exceeded', { container, usedBytes, limitBytes, isPressed: parts.pressure().isPressed });
    return true;
  };

  /**
   * @param measured the only container whose use has changed since the last call; `undefined` if
   * others may have, too
   */
  const evictOver = (measured: string | undefined): void => {
    const one = measured === undefined || parts.pressure().isPressed ? undefined : containers.get(measured);
    if (one === undefined) comparedAtMs = steadyMs();
    const uses = (one === undefined ? [...containers.values()] : [one]).flatMap(
      (each) => useOf(each, volumes, parts.limitOf(each.id)) ?? [],
    );
    const { over, within, underPressure } = evictionsOf(uses);
    for (const use of over) evict(use);
    for (const use of within) parts.relieve(use);
    const pressure = parts.pressure();
    if (!pressure.isPressed || (relief !== undefined && isAwaited(relief, pressure, steadyMs()))) return;
    const evicted = underPressure.find(evict);
    if (evicted !== undefined) relief = { dockerId: evicted.dockerId, atMs: steadyMs(), downAtMs: null };
  };

  const tellUnknown = (): void => {
    const words = unmeasuredWords([...unmeasured.values()], volumes);
    if (words === undefined) parts.faults.clear('disk_unmeasured');
    else parts.faults.restate('disk_unmeasured', words);
  };

  const settle = (measured?: string): void => {
    evictOver(measured);
    tellUnknown();
  };

  const outcomeOf = (error: unknown): AttemptOutcome =>
    // While the whole engine hangs, the container is not to blame.
    error instanceof EngineError && error.fault.kind === 'deadline' && parts.isEngineUp() ? 'late' : 'failed';

  const measure = async ({ dockerId, id, tenant }: Measured): Promise<string> => {
    const startMs = steadyMs();
    measuring.set(dockerId, tenant);
    let outcome: AttemptOutcome = 'measured';
    let written: Measured['written'] | undefined;
    try {
      written = await engine.written(dockerId);
      if (written === undefined) forget(dockerId);
    } catch (error) {
      outcome = outcomeOf(error);
      const before = containers.get(dockerId)?.attempts ?? untried;
      const isNews = !isUnknown(before) && isUnknown(attempted(before, outcome, 0, 0));
      log[isNews ? 'warn' : 'debug']('disk_measure_failed', { container: id, tenant, error });
    } finally {
      measuring.delete(dockerId);
      const atMs = steadyMs();
      spent.set(tenant, { ms: spentOn(tenant, atMs) + atMs - startMs, atMs });
    }
    const current = containers.get(dockerId);
    if (current === undefined) return dockerId;
    const attempts = attempted(current.attempts, outcome, startMs, steadyMs());
    put({ ...current, written: written ?? current.written, attempts });
    return dockerId;
  };

  const measureVolumes = async (): Promise<undefined> => {
    const startMs = steadyMs();
    isMeasuringVolumes = true;
    let outcome: AttemptOutcome = 'measured';
    let { bytes } = volumes;
    try {
      bytes = await engine.volumeBytes();
    } catch (error) {
      // Layers that were measured still count.
      outcome = outcomeOf(error);
      const isNews = !isUnknown(volumes.attempts) && isUnknown(attempted(volumes.attempts, outcome, 0, 0));
      log[isNews ? 'warn' : 'debug']('volume_measure_failed', { error });
    } finally {
      isMeasuringVolumes = false;
      volumes = { bytes, attempts: attempted(volumes.attempts, outcome, startMs, steadyMs()) };
    }
  };

  /** Resolves to the engine's id of the container that was measured. */
  const nextWork = (): (() => Promise<string | undefined>) | undefined => {
    const [nowMs, interval] = [steadyMs(), intervalMs()];
    const areVolumesDue = !isMeasuringVolumes && dueAtMs(volumes.attempts, interval) <= nowMs;
    if (areVolumesDue && withVolumes.size > 0) return measureVolumes;
    const next = nextToMeasure(containers.values(), {
      nowMs,
      intervalMs: interval,
      isPressed: parts.pressure().isPressed,
      busy: new Set(measuring.values()),
      spentMs: (tenant) => spentOn(tenant, nowMs),
    });
    return next === undefined ? undefined : () => measure(next);
  };

  const dispatch = (signal: AbortSignal): void => {
    const running = (): number => measuring.size + Number(isMeasuringVolumes);
    while (!signal.aborted && parts.isEngineUp() && running() < diskMeasurements) {
      const work = nextWork();
      if (work === undefined) return;
      void work()
        .then((measured) => {
          if (signal.aborted) return;
          settle(measured);
          dispatch(signal);
        })
        .catch((error: unknown) => log.error('disk_check_failed', { error }));
    }
  };

  const look = async (signal: AbortSignal): Promise<void> => {
    if (!parts.isEngineUp()) return;
    const known = await engine.containers();
    if (known !== tracked) track(known);
    tidy();
    if (signal.aborted) return;
    // Limits may have changed. What a container wrote is compared as soon as it is measured.
    if (parts.pressure().isPressed || steadyMs() - comparedAtMs >= intervalMs()) settle();
    else tellUnknown();
    dispatch(signal);
  };

  return {
    look,
    unknown: () =>
      isUnknown(volumes.attempts) ? new Set([...unmeasured.keys(), ...withVolumes]).size : unmeasured.size,
    run: (signal) => {
      // The agent does not wait for a hanging engine when it stops.
      const looks = (): Promise<void> =>
        withAbort([signal], (looking) => Promise.race([look(signal), aborted(looking.signal)])).catch(
          (error: unknown) => log.debug('disk_check_failed', { error }),
        );
      return every(() => Math.min(limits.diskLookMs, settings.DISK_INTERVAL), looks, signal);
    },
  };
}
