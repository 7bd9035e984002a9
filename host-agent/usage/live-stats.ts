/**
 * The current use of containers, once a second: one reader for each watched container, however many
 * watch it.
 */
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { ContainerStats } from '../../schemas/api/usage/stats.ts';
import { limits } from '../../schemas/limits.ts';
import type { Inspection } from '../docker/answers.ts';
import type { CachedEngine } from '../docker/cached-engine.ts';
import type { Cgroups } from './cgroups.ts';
import { isRunning, startIn, useFromEngine, useFromFiles, type Use } from './use.ts';

/** The time between two samples of a watched container; it is shorter before the second one. */
const statsEveryMs = 1000;
const statsFirstMs = 500;

export interface StatsWatcher {
  onStats(stats: ContainerStats): void;
  /** The container does not run any more; nothing follows. */
  onEnd(): void;
}

export interface LiveStats {
  /** Calls `watcher`, never at once, until it ends or the returned function is called. */
  watch(dockerId: string, watcher: StatsWatcher): () => void;
  /** The number of containers that are read. */
  readonly count: () => number;
}

interface LiveStatsParts {
  readonly engine: Pick<CachedEngine, 'inspect' | 'stats'>;
  /** `undefined` if the engine is on another machine. */
  readonly cgroups: Cgroups | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

interface Seen {
  readonly startedAt: string;
  readonly cpuMs: number;
  readonly atMs: number;
}

/** CPU since `before` as a rate, in thousandths of a core. Pure. */
export function statsOf(use: Use, before: Seen, now: { readonly monotonicMs: number; readonly at: string }) {
  const elapsedMs = Math.max(1, now.monotonicMs - before.atMs);
  const stats: ContainerStats = {
    cpu_millis: Math.max(0, Math.round(((use.cpuMs - before.cpuMs) * 1000) / elapsedMs)),
    mem_bytes: use.memBytes,
    mem_limit: use.memLimit,
    net_rx_bytes: use.net?.rxBytes ?? null,
    net_tx_bytes: use.net?.txBytes ?? null,
    pids: use.pids,
    at: now.at,
  };
  return stats;
}

export function createLiveStats(parts: LiveStatsParts): LiveStats {
  const readers = new Map<string, Reader>();
  return {
    watch: (dockerId, watcher) => {
      let reader = readers.get(dockerId);
      if (reader === undefined) {
        reader = new Reader(parts, dockerId, () => readers.delete(dockerId));
        readers.set(dockerId, reader);
      }
      return reader.add(watcher);
    },
    count: () => readers.size,
  };
}

class Reader {
  readonly #parts: LiveStatsParts;
  readonly #dockerId: string;
  readonly #onDone: () => void;
  readonly #watchers = new Set<StatsWatcher>();
  #before: Seen | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isDone = false;

  constructor(parts: LiveStatsParts, dockerId: string, onDone: () => void) {
    this.#parts = parts;
    this.#dockerId = dockerId;
    this.#onDone = onDone;
    this.#timer = setTimeout(() => void this.#round(), 0);
  }

  add(watcher: StatsWatcher): () => void {
    this.#watchers.add(watcher);
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) this.#finish();
    };
  }

  async #round(): Promise<void> {
    const startMs = this.#parts.clock.monotonicMs();
    const isFirst = this.#before === undefined;
    try {
      if (!(await this.#read())) {
        this.#end();
        return;
      }
    } catch (error) {
      // The engine does not answer; its containers may run on.
      this.#parts.log.debug('stats_read_failed', { dockerId: this.#dockerId, error });
    }
    if (this.#isDone) return;
    // The first sample only serves as the base of the second.
    const everyMs = isFirst ? statsFirstMs : statsEveryMs;
    const waitMs = everyMs - (this.#parts.clock.monotonicMs() - startMs);
    this.#timer = setTimeout(() => void this.#round(), Math.max(0, waitMs));
  }

  /** @returns `false` if the container does not run */
  async #read(): Promise<boolean> {
    const { engine, clock } = this.#parts;
    const inspection = await engine.inspect(this.#dockerId);
    const startedAt = inspection === undefined ? undefined : startIn(inspection);
    if (inspection === undefined || startedAt === undefined || !isRunning(inspection.State.Status)) return false;
    const use = await this.#useOf(inspection);
    if (use === undefined || this.#isDone) return true;
    const monotonicMs = clock.monotonicMs();
    const before = this.#before;
    this.#before = { startedAt, cpuMs: use.cpuMs, atMs: monotonicMs };
    // The counters of another run began at zero.
    if (before?.startedAt !== startedAt) return true;
    const stats = statsOf(use, before, { monotonicMs, at: new Date(clock.nowMs()).toISOString() });
    for (const watcher of this.#watchers) watcher.onStats(stats);
    return true;
  }

  async #useOf(inspection: Inspection): Promise<Use | undefined> {
    const { engine, cgroups } = this.#parts;
    return (
      useFromFiles(cgroups, inspection, true) ?? (await useFromEngine(engine, inspection, limits.usageSampleMs, true))
    );
  }

  #end(): void {
    const watchers = [...this.#watchers];
    this.#finish();
    for (const watcher of watchers) watcher.onEnd();
  }

  #finish(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    clearTimeout(this.#timer);
    this.#watchers.clear();
    this.#onDone();
  }
}
