/**
 * A thread that runs seeds, one after another. Threads are faster, and they keep the runs away from
 * the test runner's hooks, which cost more than the runs themselves.
 */
import { availableParallelism } from 'node:os';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import { simulate, type Run } from './simulation.ts';

interface Work {
  readonly seeds: readonly number[];
  readonly clocks: 'real' | 'erratic';
}

/**
 * The runs of all seeds, in the order of the seeds.
 * @param clocks erratic: those of the machine leap, as if it stood still now and then
 */
export async function simulateAll(seeds: readonly number[], clocks: Work['clocks'] = 'real'): Promise<Run[]> {
  const threads = Math.min(availableParallelism(), seeds.length);
  const runs = new Map<number, Run>();
  const lane = async (thread: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const workerData: Work = { seeds: seeds.filter((_, index) => index % threads === thread), clocks };
      const worker = new Worker(new URL(import.meta.url), { workerData });
      worker.on('message', ([seed, run]: [number, Run]) => runs.set(seed, run));
      worker.once('error', reject);
      worker.once('exit', () => resolve());
    });
  await Promise.all(Array.from({ length: threads }, async (_, thread) => lane(thread)));
  return seeds.flatMap((seed) => runs.get(seed) ?? []);
}

/** Each reading of a clock is half a second after the one before. */
function makeErratic(): void {
  let ms = 0;
  performance.now = () => (ms += 500);
  Date.now = () => (ms += 500);
}

if (!isMainThread && parentPort !== null) {
  const { seeds, clocks } = workerData as Work;
  for (const seed of seeds) {
    if (clocks === 'erratic') makeErratic();
    parentPort.postMessage([seed, await simulate(seed)]);
  }
}
