/**
 * Where answers to the asks of a connection arrive: below the prefix that its NATS user may read.
 */
import { createInbox, type NatsConnection } from '@nats-io/transport-node';

const prefixes = new WeakMap<NatsConnection, string>();

export function keepInboxPrefix(nc: NatsConnection, prefix: string): void {
  prefixes.set(nc, prefix);
}

/** Makes a new inbox. */
export const inboxOf = (nc: NatsConnection): string => createInbox(prefixes.get(nc));
