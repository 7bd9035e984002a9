/**
 * How a server ends without failing a request that it accepted: it says that it is not ready and
 * goes on serving while load balancers notice, each reply now ending its connection; then it takes
 * no new connections, and waits for what is in flight.
 */
import { sleep } from '../../../lib/time/backoff.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import type { HttpEngine } from './engine.ts';
import { limits } from '../../../schemas/limits.ts';

export async function drain(
  engine: HttpEngine,
  clock: Clock,
  bounds: { readonly delayMs: number; readonly graceMs: number },
): Promise<void> {
  engine.refuseKeepAlive();
  await sleep(bounds.delayMs);
  // Right after the event loop has accepted what was waiting: the kernel resets a connection that
  // it has made and nobody has accepted when the listening socket is closed.
  await new Promise(setImmediate);
  engine.stopListening();
  const endMs = clock.monotonicMs() + bounds.graceMs;
  let busyMs = clock.monotonicMs();
  for (;;) {
    const nowMs = clock.monotonicMs();
    // A process that got no processor between two looks has seen no quiet.
    if (engine.inFlight() > 0) busyMs = nowMs;
    if (nowMs >= endMs || nowMs - busyMs >= limits.shutdownQuietMs) break;
    await sleep(limits.shutdownLookMs);
  }
  engine.close();
}
