/**
 * How a server ends without failing a request that it accepted: it says that it is not ready and
 * goes on serving while load balancers notice, each reply now ending its connection; then it takes
 * no new connections, and waits for what is in flight.
 */
import { sleep } from '../../../lib/backoff.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { HttpEngine } from './engine.ts';

const pollMs = 20;
/**
 * Nothing in flight for so long: the last byte was handed to the kernel, and whoever connected at
 * the last moment has sent what it wanted and has its answer.
 */
const quietMs = 100;

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
    if (nowMs >= endMs || nowMs - busyMs >= quietMs) break;
    await sleep(pollMs);
  }
  engine.close();
}
