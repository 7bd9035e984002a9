/**
 * One slow sample of all running containers, for the ledger. It reads the kernel's files if it can,
 * and asks the engine otherwise, less often. A run is counted by the engine's times of its start
 * and end, whenever the agent learns of them; its CPU time after the last sample is lost if it ends
 * by itself.
 */
import { setImmediate } from 'node:timers/promises';
import { every } from '../../lib/time/every.ts';
import type { Log } from '../../lib/log.ts';
import { createSemaphore } from '../../lib/semaphore.ts';
import { isTenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { Inspection } from '../docker/answers.ts';
import type { CachedEngine, KnownContainer } from '../docker/cached-engine.ts';
import { containerIn, tenantIn } from '../docker/ownership.ts';
import type { SampledFrom } from '../metrics.ts';
import type { Cgroups } from './cgroups.ts';
import type { UsageStore } from './store.ts';
import { isRunning, startIn, useFromEngine, useFromFiles, type Use } from './use.ts';
import { seconds } from '../../schemas/limits/units.ts';

/** Time for the last sample before a stop. */
const usageLastSampleMs = 1 * seconds;

/** A container whose cgroup the agent can't read is asked of the engine in one of so many. */
const usageEngineEvery = 4;
/** Questions to the engine at a time. */
const usageSamplesAtOnce = 4;

interface SamplerParts {
  readonly engine: CachedEngine;
  /** `undefined` if the engine is on another machine. */
  readonly cgroups: Cgroups | undefined;
  readonly store: UsageStore;
  readonly isEngineUp: () => boolean;
  readonly intervalMs: number;
  readonly onSampled: (from: SampledFrom) => void;
  /** Shows the use of each container at its last sample; `undefined` if that is off. */
  readonly board: UseBoard | undefined;
  /** A run has ended. */
  readonly onEnded: () => void;
  readonly log: Log;
}

export interface Sampler {
  /**
   * The engine, wrapped: the sampler sees its inspections, and samples a container before its stop.
   */
  readonly sampled: CachedEngine;
  /** Samples once; rejects if the engine does not answer. */
  sample(): Promise<void>;
  run(signal: AbortSignal): Promise<void>;
}

/** The use of containers at their last samples. */
export interface UseBoard {
  put(container: KnownContainer, use: Use): void;
  /** The other containers no longer run. */
  keepOnly(dockerIds: ReadonlySet<string>): void;
}

export function createSampler(parts: SamplerParts): Sampler {
  const { cgroups, store, log } = parts;
  const { ledger, moment } = store;
  const semaphore = createSemaphore(usageSamplesAtOnce);
  let rounds = 0;

  /** Takes in the engine's inspection of a container. */
  const see = (inspection: Inspection): void => {
    const { Id: dockerId, State, Config } = inspection;
    const id = containerIn(Config.Labels);
    const tenant = tenantIn(Config.Labels);
    const startedAt = startIn(inspection);
    if (id === undefined || startedAt === undefined || !isTenantId(tenant)) return;
    const runs = isRunning(State.Status);
    // While it is removed, its state proves neither.
    if (!runs && !(Date.parse(State.FinishedAt) >= Date.parse(startedAt))) return;
    const finishedAt = runs ? undefined : State.FinishedAt;
    if (ledger.see({ dockerId, tenant, id, startedAt, finishedAt }, moment())) parts.onEnded();
    if (ledger.hasChanged) store.touch();
  };

  const before = async <T>(dockerId: string, end: () => Promise<T>): Promise<T> => {
    await last(dockerId);
    return end();
  };
  /**
   * The engine forgets a run when its container starts again, or is removed: the ledger on disk is
   * then the only one that knows it, also if this agent is killed.
   */
  const kept = async <T>(dockerId: string, forget: () => Promise<T>): Promise<T> => {
    if (ledger.knows(dockerId)) await store.flush();
    return forget();
  };
  const engine: CachedEngine = {
    ...parts.engine,
    inspect: async (dockerId) => {
      const inspection = await parts.engine.inspect(dockerId);
      if (inspection !== undefined) see(inspection);
      return inspection;
    },
    endOf: (dockerId) => {
      const end = parts.engine.endOf(dockerId);
      if (end !== undefined) see(end);
      return end;
    },
    stop: (dockerId, graceMs) => before(dockerId, () => parts.engine.stop(dockerId, graceMs)),
    stopBy: (dockerId, signal, graceMs) => before(dockerId, () => parts.engine.stopBy(dockerId, signal, graceMs)),
    kill: (dockerId) => before(dockerId, () => parts.engine.kill(dockerId)),
    start: (dockerId) => kept(dockerId, () => parts.engine.start(dockerId)),
    remove: (dockerId, volumes) => kept(dockerId, () => parts.engine.remove(dockerId, volumes)),
  };

  /** @param container the container that its use is shown for */
  const sampleOne = async (
    inspection: Inspection,
    deadlineMs: number | undefined,
    container?: KnownContainer,
  ): Promise<void> => {
    const { Id: dockerId } = inspection;
    const startedAt = startIn(inspection);
    if (startedAt === undefined) return;
    const isShown = container !== undefined && parts.board !== undefined;
    let from: SampledFrom = 'files';
    let use = useFromFiles(cgroups, inspection, isShown);
    if (use === undefined && deadlineMs !== undefined) {
      from = 'engine';
      use = await useFromEngine(engine, inspection, deadlineMs, isShown).catch((error: unknown) => {
        log.debug('usage_sample_failed', { dockerId, error });
        return undefined;
      });
    }
    parts.onSampled(use === undefined ? 'nowhere' : from);
    ledger.sample(dockerId, startedAt, moment(), use && { cpuMs: use.cpuMs, memBytes: use.memBytes });
    if (isShown && use !== undefined) parts.board?.put(container, use);
  };

  /** The last sample before a stop. Never rejects. */
  const last = async (dockerId: string): Promise<void> => {
    try {
      const inspection = await engine.inspect(dockerId);
      if (inspection !== undefined && isRunning(inspection.State.Status)) {
        await sampleOne(inspection, usageLastSampleMs);
      }
    } catch (error) {
      log.debug('usage_sample_failed', { dockerId, error });
    }
  };

  const sample = async (): Promise<void> => {
    const isEngineAsked = rounds++ % usageEngineEvery === 0;
    // Runs that the ledger learns of while the engine lists may not be in the list.
    const known = ledger.dockerIds();
    const containers = await engine.containers();
    const listed = new Set(containers.map(({ dockerId }) => dockerId));
    ledger.forget([...known].filter((dockerId) => !listed.has(dockerId)));
    const running = containers.filter(({ state }) => state === undefined || isRunning(state));
    parts.board?.keepOnly(new Set(running.map(({ dockerId }) => dockerId)));
    await Promise.all(
      running.map((container) =>
        semaphore.run(async () => {
          // The files are read synchronously: other work of the agent comes in between.
          await setImmediate();
          const inspection = await engine.inspect(container.dockerId);
          if (inspection === undefined || !isRunning(inspection.State.Status)) return;
          await sampleOne(inspection, isEngineAsked ? limits.usageSampleMs : undefined, container);
        }),
      ),
    );
    await store.close();
  };

  return {
    sampled: engine,
    sample,
    run: (signal) => {
      const look = async (): Promise<void> => {
        try {
          if (parts.isEngineUp()) await sample();
        } catch (error) {
          log.debug('usage_sample_failed', { error });
        }
      };
      // Not in step with other hosts.
      return every(() => parts.intervalMs * (0.95 + Math.random() / 10), look, signal);
    },
  };
}
