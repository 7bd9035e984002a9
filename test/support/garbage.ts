import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
export const collectNow = runInNewContext('gc') as () => void;

/** Collects all garbage: what only a weak reference holds is gone then. */
export async function collectGarbage(): Promise<void> {
  // References may be held until the turn of the event loop ends.
  for (let round = 0; round < 5; round++) {
    await setImmediate();
    collectNow();
  }
}

/** Bytes that each call leaves behind, not counting what the first calls set up. */
export async function bytesLeftBy(call: () => Promise<unknown>, calls = 2000): Promise<number> {
  const heapAfter = async (times: number): Promise<number> => {
    for (let time = 0; time < times; time++) await call();
    await collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = await heapAfter(calls);
  return ((await heapAfter(calls)) - before) / calls;
}
