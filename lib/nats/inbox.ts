/**
 * Inboxes for answers to the asks of a connection, below the prefix that its NATS user may read.
 */
import { createInbox, type NatsConnection } from '@nats-io/transport-node';
import { userOfInbox } from '../../schemas/wire/subjects.ts';

const prefixes = new WeakMap<NatsConnection, string>();

export function keepInboxPrefix(nc: NatsConnection, prefix: string): void {
  prefixes.set(nc, prefix);
}

/** The public key of the connection's user; `undefined` if its credentials name none. */
export const userOf = (nc: NatsConnection): string | undefined => userOfInbox(prefixes.get(nc) ?? '');

/** Makes a new inbox. */
export const inboxOf = (nc: NatsConnection): string => createInbox(prefixes.get(nc));
