import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Collects all garbage: what only a weak reference holds is gone then. */
export async function collectGarbage(): Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // References may be held until the turn of the event loop ends.
  for (let round = 0; round < 5; round++) {
    await setImmediate();
    collect();
  }
}
