import type { NatsConnection } from '@nats-io/transport-node';
import { within } from '../../lib/time/backoff.ts';

/** Calls `act` and resolves to the first permission error that the server sends. */
export async function refusal(nc: NatsConnection, act: () => void): Promise<string> {
  const seen = (async () => {
    for await (const status of nc.status()) if (status.type === 'error') return status.error.message;
    return 'closed';
  })();
  act();
  return within(seen, 3_000, 'a refusal');
}
