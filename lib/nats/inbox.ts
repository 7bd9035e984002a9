/**
 * Where the answers to questions of a connection arrive: below the prefix that its NATS user may
 * read.
 */
import { createInbox, type NatsConnection } from '@nats-io/transport-node';

const prefixes = new WeakMap<NatsConnection, string>();

export function keepInboxPrefix(nc: NatsConnection, prefix: string): void {
  prefixes.set(nc, prefix);
}

/** A new one. */
export const inboxOf = (nc: NatsConnection): string => createInbox(prefixes.get(nc));
