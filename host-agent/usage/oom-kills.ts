/**
 * Finds the runs that lost a process for want of memory, by the kernel's counters. The engine's own
 * `OOMKilled` is not enough. The engine learns of a kill beside the exit, sometimes too late
 * (containerd#8893); and if it can't read the cgroups of its containers, it never learns of one.
 *
 * The kernel counts such kills for each cgroup. That counter goes with the cgroup, which the engine
 * removes before it reports the end; a file of it that is still open then fails to read. cgroup v1
 * counts nothing in the parent, and notifies only an eventfd, which Node can't make. But the kernel
 * also counts the kills of the whole machine (`/proc/vmstat`). So:
 *
 * - Each run has a mark: a count of the machine that has no kill of this run in it. The agent takes
 *   it before the start, and again whenever it finds the run's own counter still 0.
 * - A run whose own counter is not 0 was hit, whatever code it fails with.
 * - A run that ends with 137 (SIGKILL), and not because the agent stops it, was hit if the machine
 *   has counted a kill since the mark. A shell ends with this code, too, if its child was killed.
 *
 * Once a second the agent reads the machine's counter, and the counters of running containers only
 * after it has grown. Within that second two answers are wrong: a container that somebody ends with
 * SIGKILL just after a kill elsewhere counts as out of memory, and one that fails with another code
 * just after its child was killed does not.
 */
import { setImmediate } from 'node:timers/promises';
import { every } from '../../lib/time/every.ts';
import type { Inspection } from '../docker/answers.ts';
import type { CachedEngine } from '../docker/cached-engine.ts';
import type { Cgroups } from './cgroups.ts';
import { isRunning, startIn } from './use.ts';

/**
 * A container whose cgroup can't be read and that still runs after so many looks has not lost its
 * first process: the engine tells of an end sooner.
 */
export const oomLooksUnread = 30;

/** The time between two reads of the kernel's count of processes that it killed. */
const oomLookMs = 1000;

type KernelCounters = Pick<Cgroups, 'oomKills' | 'machineOomKills'>;

interface Run {
  /** `undefined` if its start was requested, and not seen yet. */
  startedAt: string | undefined;
  /** `undefined` if it was not seen while it ran. */
  pid: number | undefined;
  mark: number;
  wasHit: boolean;
  isOver: boolean;
  /** `true` if the agent ends it. */
  isStopped: boolean;
  /** The number of checks in a row that could not read its counter. */
  unread: number;
  /** The start of the previous run. */
  readonly earlier: string | undefined;
}

const killed = 128 + 9;

export class OomKills {
  readonly #kernel: KernelCounters;
  readonly #runs = new Map<string, Run>();

  constructor(kernel: KernelCounters) {
    this.#kernel = kernel;
  }

  /** The engine, with the kernel's count in its inspections of containers that failed. */
  over(engine: CachedEngine): CachedEngine {
    const stopping = <T>(dockerId: string, stop: () => Promise<T>): Promise<T> => {
      const run = this.#runs.get(dockerId);
      if (run !== undefined) run.isStopped = true;
      return stop();
    };
    return {
      ...engine,
      start: (dockerId) => {
        this.#begin(dockerId);
        return engine.start(dockerId);
      },
      stop: (dockerId, graceMs) => stopping(dockerId, () => engine.stop(dockerId, graceMs)),
      stopBy: (dockerId, signal, graceMs) => stopping(dockerId, () => engine.stopBy(dockerId, signal, graceMs)),
      kill: (dockerId) => stopping(dockerId, () => engine.kill(dockerId)),
      inspect: async (dockerId) => {
        const inspection = await engine.inspect(dockerId);
        return inspection === undefined ? undefined : this.#corrected(inspection);
      },
      listAll: async () => {
        const known = [...this.#runs.keys()];
        const summaries = await engine.listAll();
        const listed = new Set(summaries.map(({ Id }) => Id));
        for (const dockerId of known) if (!listed.has(dockerId)) this.#runs.delete(dockerId);
        return summaries;
      },
      heard: (event) => {
        const { Action, Actor } = event;
        const run = Actor === undefined ? undefined : this.#runs.get(Actor.ID);
        if (run !== undefined && Action === 'die') this.#end(run, Number(Actor?.Attributes['exitCode']));
        return engine.heard(event);
      },
    };
  }

  run(signal: AbortSignal): Promise<void> {
    return every(
      () => oomLookMs,
      () => this.look(),
      signal,
    );
  }

  /** Reads the counters of running containers if the machine's has grown. */
  async look(): Promise<void> {
    const count = this.#kernel.machineOomKills();
    if (count === undefined) return;
    for (const [dockerId, run] of [...this.#runs]) {
      if (run.isOver || run.wasHit || run.mark >= count || run.pid === undefined) continue;
      // The files are read synchronously: other work of the agent comes in between.
      await setImmediate();
      const own = this.#kernel.oomKills(dockerId, run.pid);
      run.wasHit = own !== undefined && own > 0;
      run.unread = own === undefined ? run.unread + 1 : 0;
      if (own === 0 || run.unread >= oomLooksUnread) run.mark = count;
    }
  }

  #begin(dockerId: string): void {
    const before = this.#runs.get(dockerId);
    // It runs already: the engine changes nothing.
    if (before?.startedAt !== undefined && !before.isOver) return;
    this.#note(dockerId, undefined, before?.startedAt);
  }

  #note(dockerId: string, startedAt: string | undefined, earlier: string | undefined): Run {
    const mark = this.#kernel.machineOomKills() ?? Infinity;
    const fresh = { pid: undefined, wasHit: false, isOver: false, isStopped: false, unread: 0 };
    const run: Run = { ...fresh, startedAt, mark, earlier };
    this.#runs.set(dockerId, run);
    return run;
  }

  /** `undefined` if it is over, and was not seen before. */
  #runOf({ Id, State }: Inspection, startedAt: string): Run | undefined {
    const run = this.#runs.get(Id);
    if (run !== undefined && (run.startedAt ?? startedAt) === startedAt && run.earlier !== startedAt) return run;
    if (!isRunning(State.Status) || run?.earlier === startedAt) return undefined;
    const { Pid = 0 } = State;
    const found = this.#note(Id, startedAt, undefined);
    found.wasHit = (this.#kernel.oomKills(Id, Pid) ?? 0) > 0;
    return found;
  }

  #corrected(inspection: Inspection): Inspection {
    const { State } = inspection;
    const startedAt = startIn(inspection);
    const run = startedAt === undefined ? undefined : this.#runOf(inspection, startedAt);
    if (run === undefined) return inspection;
    run.startedAt = startedAt;
    if (isRunning(State.Status)) {
      run.pid = State.Pid;
      return inspection;
    }
    this.#end(run, State.ExitCode);
    return run.wasHit && State.ExitCode !== 0 ? { ...inspection, State: { ...State, OOMKilled: true } } : inspection;
  }

  #end(run: Run, exitCode: number): void {
    if (run.isOver) return;
    run.isOver = true;
    if (exitCode !== killed || run.isStopped) return;
    run.wasHit ||= (this.#kernel.machineOomKills() ?? -1) > run.mark;
  }
}
