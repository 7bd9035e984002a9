/** The owners of partitions as a sync meets them, without a server: they say what the test says. */
import type { Msg, MsgHdrs, NatsConnection, Subscription, SubOpts } from '@nats-io/transport-node';
import type { SyncTarget } from '../../../host-agent/control-plane/sync/sync.ts';
import type { SyncAnswer, SyncAsk } from '../../../schemas/wire/host.ts';
import { syncAnswer } from './decisions.ts';

export const partitions = 4;

export const answerOf = (partition: number, more: Partial<SyncAnswer> = {}): SyncAnswer =>
  syncAnswer({ partitions, partition, ...more });

/** A sync's target that has no stranger and hears nothing, but for what a test says. */
export const targetOf = (parts: Pick<SyncTarget, 'sender' | 'current' | 'update'>): SyncTarget => ({
  settled: () => {},
  fenced: () => {},
  orphanWord: () => {},
  strangers: () => [],
  unjudged: () => [],
  verdicts: () => {},
  incarnation: () => {},
  ...parts,
});

export interface Asked {
  readonly subject: string;
  readonly inbox: string;
  readonly ask: SyncAsk;
}

/** @param onAsk called while the ask is published; it throws as a closed connection does */
export function createOwners(onAsk: (asked: Asked) => void = () => {}) {
  const inboxes = new Map<string, (error: Error | null, message: Msg) => void>();
  const connection: Partial<NatsConnection> = {
    subscribe: (subject: string, options?: SubOpts<Msg>) => {
      inboxes.set(subject, (error, message) => void options?.callback?.(error, message));
      const subscription: Partial<Subscription> = { unsubscribe: () => void inboxes.delete(subject) };
      return subscription as Subscription;
    },
    publish: (subject, payload, options) => {
      const ask = JSON.parse(String(payload)) as SyncAsk;
      onAsk({ subject, inbox: options?.reply ?? '', ask });
    },
  };
  const deliver = (message: Partial<Msg>): void => {
    for (const callback of [...inboxes.values()]) callback(null, message as Msg);
  };
  return {
    nc: connection as NatsConnection,
    /** Into every inbox that is open. */
    say: (...said: readonly (object | string)[]) => {
      for (const one of said) deliver({ data: Buffer.from(typeof one === 'string' ? one : JSON.stringify(one)) });
    },
    /** What the server says where nobody owns a partition. */
    sayNobodyIsThere: () => deliver({ data: new Uint8Array(), headers: { code: 503 } as MsgHdrs }),
    inboxes: () => [...inboxes.keys()],
  };
}
