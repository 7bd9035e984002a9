/**
 * How a server ends without failing a request that it accepted: it says that it is not ready and goes on serving while
 * load balancers notice, each reply now ending its connection; then it takes no new connections, and waits for what is in
 * flight.
 */
import { sleep } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import type { HttpEngine } from './engine.ts';

const pollMs = 20;
/** From the last reply handed to the engine to the last byte handed to the kernel. */
const flushMs = 50;

export async function drain(
  engine: HttpEngine,
  clock: Clock,
  bounds: { readonly delayMs: number; readonly graceMs: number },
): Promise<void> {
  engine.refuseKeepAlive();
  await sleep(bounds.delayMs);
  engine.stopListening();
  const endMs = clock.monotonicMs() + bounds.graceMs;
  while (engine.inFlight() > 0 && clock.monotonicMs() < endMs) await sleep(pollMs);
  await sleep(flushMs);
  engine.close();
}
