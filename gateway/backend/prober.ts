/**
 * Asks a partition now and then while there are no requests: only answers show that this gateway
 * can serve, and without requests there would be none.
 */
import type { Clock } from '../../lib/clock.ts';
import { limits } from '../../schemas/limits.ts';
import type { Coalescer } from '../../lib/rpc/coalescer.ts';

/** Starts asking; the result ends it. */
export function probePartitions(coalescer: Coalescer, clock: Clock): () => void {
  let partition = 0;
  const timer = setInterval(() => {
    if (coalescer.unansweredMs() < limits.gatewayProbeMs) return;
    partition = (partition + 1) % coalescer.partitions;
    // No token has an empty hash: an owner answers without a look at any record.
    const question = { type: 'token.resolve', partition, hash: '', rid: 'probe' } as const;
    void coalescer.ask('read', question, clock.monotonicMs() + limits.gatewayProbeDeadlineMs);
  }, limits.gatewayProbeMs).unref();
  return () => clearInterval(timer);
}
