/**
 * Asks a partition at intervals while there are no requests: only answers show that this gateway
 * can serve, and without requests there would be none.
 */
import type { Clock } from '../../lib/time/clock.ts';
import type { PartitionClient } from '../../lib/rpc/partition-client.ts';

/** An idle gateway probes a partition this often. */
const gatewayProbeMs = 1000;
const gatewayProbeDeadlineMs = 5000;

/** Starts asking; the returned function ends it. */
export function probePartitions(client: PartitionClient, clock: Clock): () => void {
  let partition = 0;
  const timer = setInterval(() => {
    if (client.unansweredMs() < gatewayProbeMs) return;
    partition = (partition + 1) % client.partitions;
    // No token has an empty hash, so an owner answers without reading any record.
    const question = { type: 'token.resolve', partition, hash: '', rid: 'probe' } as const;
    void client.ask('read', question, clock.monotonicMs() + gatewayProbeDeadlineMs);
  }, gatewayProbeMs).unref();
  return () => clearInterval(timer);
}
