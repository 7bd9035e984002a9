/**
 * A thread that runs seeds, one after another. Threads are faster, and they keep the runs away from
 * the test runner's hooks, which cost more than the runs themselves.
 */
import { availableParallelism } from 'node:os';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import { simulate, type Run } from './simulation.ts';

/** The runs of all seeds, in the order of the seeds. */
export async function simulateAll(seeds: readonly number[]): Promise<Run[]> {
  const threads = Math.min(availableParallelism(), seeds.length);
  const runs = new Map<number, Run>();
  const lane = async (thread: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const own = seeds.filter((_, index) => index % threads === thread);
      const worker = new Worker(new URL(import.meta.url), { workerData: own });
      worker.on('message', ([seed, run]: [number, Run]) => runs.set(seed, run));
      worker.once('error', reject);
      worker.once('exit', () => resolve());
    });
  await Promise.all(Array.from({ length: threads }, async (_, thread) => lane(thread)));
  return seeds.flatMap((seed) => runs.get(seed) ?? []);
}

if (!isMainThread && parentPort !== null) {
  for (const seed of workerData as number[]) parentPort.postMessage([seed, await simulate(seed)]);
}
