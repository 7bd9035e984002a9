/**
 * Graceful shutdown: no accepted request fails. The server reports that it is not ready and
 * continues to serve while load balancers notice; each reply now ends its connection. Then it takes
 * no new connections, and waits for the requests in flight.
 */
import { sleep } from '../../../lib/time/backoff.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import type { HttpEngine } from './engine.ts';

/**
 * A gateway stops when nothing was in flight for this long: the kernel has the last byte, and a
 * client that connected at the last moment has its answer.
 */
export const shutdownQuietMs = 100;

/** The time between two checks for requests in flight at a shutdown. */
const shutdownLookMs = 20;

/** Turns of the event loop that may go by before the listening socket is closed. */
const acceptTurnsMax = 1_000;

/**
 * When a listening socket is closed, the kernel resets the connections that the process has not
 * accepted. So it is closed right after a turn of the event loop that was too short for one to
 * come: it had no new connection and no request. A client that connects later is refused, and knows
 * that it sent nothing.
 */
async function acceptAllThatWait(engine: HttpEngine): Promise<void> {
  for (let turn = 0; turn < acceptTurnsMax; turn++) {
    const before = engine.arrivals();
    await new Promise(setImmediate);
    if (engine.arrivals() === before) return;
  }
}

export async function drain(
  engine: HttpEngine,
  clock: Clock,
  bounds: { readonly delayMs: number; readonly graceMs: number },
): Promise<void> {
  engine.refuseKeepAlive();
  await sleep(bounds.delayMs);
  await acceptAllThatWait(engine);
  engine.stopListening();
  const endMs = clock.monotonicMs() + bounds.graceMs;
  let busyMs = clock.monotonicMs();
  for (;;) {
    const nowMs = clock.monotonicMs();
    // Checks what is in flight before it decides: the process may not have run for longer than the
    // quiet time, and requests may have arrived meanwhile.
    if (engine.inFlight() > 0) busyMs = nowMs;
    if (nowMs >= endMs || nowMs - busyMs >= shutdownQuietMs) break;
    await sleep(shutdownLookMs);
  }
  engine.close();
}
