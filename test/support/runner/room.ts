/**
 * Runs jobs side by side while processor time is left. Most test files wait most of their time: a
 * fixed number of them leaves an idle machine unused, or starves the tests of a busy one.
 */
import { availableParallelism, cpus } from 'node:os';
import { sleep } from '../../../lib/time/backoff.ts';

/** Time for which the processors are watched before one more job starts. */
const sampleMs = 1_500;
/** A job that starts a Longshore needs this share of the processors, while it does. */
const idleNeeded = 0.3;

export interface Bounds {
  /** So many jobs run however busy the machine is. */
  readonly least: number;
  readonly most: number;
}

const cores = availableParallelism();
export const oneForEachProcessor: Bounds = { least: cores, most: cores };

const processorTimes = (): { readonly idle: number; readonly all: number } =>
  cpus()
    .map(({ times }) => ({ idle: times.idle, all: Object.values(times).reduce((sum, ms) => sum + ms, 0) }))
    .reduce((one, other) => ({ idle: one.idle + other.idle, all: one.all + other.all }));

/** The share of the processors that idles from now on for a moment: 0 to 1. */
export async function idleShare(): Promise<number> {
  const before = processorTimes();
  await sleep(sampleMs);
  const after = processorTimes();
  return (after.idle - before.idle) / Math.max(1, after.all - before.all);
}

/** Runs the jobs in their order, and resolves when all have ended. */
export async function runAsRoomAllows(
  jobs: Iterable<() => Promise<void>>,
  { least, most }: Bounds,
  idle = idleShare,
): Promise<void> {
  const running = new Set<Promise<void>>();
  for (const job of jobs) {
    while (running.size >= least) {
      const isIdle = (await Promise.race([idle(), ...running])) ?? 0;
      if (running.size < most && isIdle >= idleNeeded) break;
    }
    const run = job().finally(() => running.delete(run));
    running.add(run);
  }
  await Promise.all(running);
}
