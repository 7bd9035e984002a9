/**
 * How a server ends without failing a request that it accepted: it reports that it is not ready and
 * continues to serve while load balancers notice, and each reply now ends its connection. Then it
 * takes no new connections, and waits for the requests in flight.
 */
import { sleep } from '../../../lib/time/backoff.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import type { HttpEngine } from './engine.ts';
import { limits } from '../../../schemas/limits.ts';

/** The time between two checks for requests in flight at a shutdown. */
const shutdownLookMs = 20;

export async function drain(
  engine: HttpEngine,
  clock: Clock,
  bounds: { readonly delayMs: number; readonly graceMs: number },
): Promise<void> {
  engine.refuseKeepAlive();
  await sleep(bounds.delayMs);
  // First lets the event loop accept the connections that wait: when the listening socket is
  // closed, the kernel resets those that the process has not accepted.
  await new Promise(setImmediate);
  engine.stopListening();
  const endMs = clock.monotonicMs() + bounds.graceMs;
  let busyMs = clock.monotonicMs();
  for (;;) {
    const nowMs = clock.monotonicMs();
    // Checks what is in flight before it decides: the process may not have run for longer than the
    // quiet time, and requests may have arrived meanwhile.
    if (engine.inFlight() > 0) busyMs = nowMs;
    if (nowMs >= endMs || nowMs - busyMs >= limits.shutdownQuietMs) break;
    await sleep(shutdownLookMs);
  }
  engine.close();
}
