/**
 * One subscription for the answers to all asks of a connection. Each ask has a subject of its own
 * below it, with a random name. So an ask costs the server no subscription, which it would spread
 * over its cluster.
 */
import { randomBytes } from 'node:crypto';
import type { Msg, NatsConnection } from '@nats-io/transport-node';

export type OnAnswer = (error: Error | null, message: Msg) => void;

export interface Ask {
  /** Where its answers go. */
  readonly subject: string;
  /** Hears no more. */
  end(): void;
}

interface Inbox {
  readonly subject: string;
  readonly asks: Map<string, OnAnswer>;
}

const inboxes = new WeakMap<NatsConnection, Map<string, Inbox>>();

const token = (): string => randomBytes(16).toString('hex');

/** @param prefix what the user of the connection may hear, without the last dot */
export function hearAnswers(nc: NatsConnection, prefix: string, onAnswer: OnAnswer): Ask {
  const { subject: below, asks } = inboxBelow(nc, prefix);
  const subject = `${below}.${token()}`;
  asks.set(subject, onAnswer);
  return { subject, end: () => void asks.delete(subject) };
}

function inboxBelow(nc: NatsConnection, prefix: string): Inbox {
  const ofConnection = inboxes.get(nc) ?? new Map<string, Inbox>();
  inboxes.set(nc, ofConnection);
  const known = ofConnection.get(prefix);
  if (known !== undefined) return known;
  const inbox: Inbox = { subject: `${prefix}.${token()}`, asks: new Map() };
  nc.subscribe(`${inbox.subject}.*`, {
    callback: (error, message) => {
      if (error === null) {
        inbox.asks.get(message.subject)?.(null, message);
        return;
      }
      // The server has ended the subscription: the next ask makes another.
      ofConnection.delete(prefix);
      for (const onAnswer of inbox.asks.values()) onAnswer(error, message);
    },
  });
  ofConnection.set(prefix, inbox);
  return inbox;
}
