/** The owners of partitions as a sync meets them, without a server: they say what the test says. */
import type { Msg, MsgHdrs, NatsConnection, Subscription, SubOpts } from '@nats-io/transport-node';
import type { SyncParts } from '../../../host-agent/link/sync.ts';
import type { DesiredSet } from '../../../host-agent/desired/desired-set.ts';
import { quietLog } from '../../actors/support.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import type { SyncAnswer, SyncAsk } from '../../../schemas/wire/host.ts';
import { syncAnswer } from './decisions.ts';

export const partitions = 4;

export const answerOf = (partition: number, more: Partial<SyncAnswer> = {}): SyncAnswer =>
  syncAnswer({ partitions, partition, ...more });

const ignore = (): void => {};

/**
 * Parts of a sync, with no strangers and with callbacks that do nothing unless a test gives others.
 */
export const syncParts = (
  { desired, accept }: { readonly desired: () => DesiredSet; readonly accept: (next: DesiredSet) => void },
  more: Partial<SyncParts> = {},
): SyncParts => ({
  sender: { host: 'h1' as HostKey, user: 'UKEY' },
  workload: {
    desired,
    accept,
    settled: ignore,
    approveOrphans: ignore,
    strangers: () => [],
    unjudged: () => [],
    applyVerdicts: ignore,
  },
  members: undefined,
  volumes: { strangers: () => [], applyVerdicts: () => Promise.resolve() },
  lease: { fenced: ignore, settled: ignore },
  onSigner: ignore,
  onIncarnation: ignore,
  onObeyed: ignore,
  log: quietLog,
  ...more,
});

export interface Asked {
  readonly subject: string;
  readonly inbox: string;
  readonly ask: SyncAsk;
}

/** @param onAsk called while the ask is published; it throws as a closed connection does */
export function createOwners(onAsk: (asked: Asked) => void = () => {}) {
  const listening: ((error: Error | null, message: Msg) => void)[] = [];
  const inboxes: string[] = [];
  const connection: Partial<NatsConnection> = {
    subscribe: (_subject: string, options?: SubOpts<Msg>) => {
      listening.push((error, message) => void options?.callback?.(error, message));
      return {} as Partial<Subscription> as Subscription;
    },
    publish: (subject, payload, options) => {
      const ask = JSON.parse(String(payload)) as SyncAsk;
      inboxes.push(options?.reply ?? '');
      onAsk({ subject, inbox: options?.reply ?? '', ask });
    },
  };
  const deliver = (message: Partial<Msg>): void => {
    for (const subject of inboxes) for (const callback of listening) callback(null, { ...message, subject } as Msg);
  };
  return {
    nc: connection as NatsConnection,
    /** Into the inbox of every ask. */
    say: (...said: readonly (object | string)[]) => {
      for (const one of said) deliver({ data: Buffer.from(typeof one === 'string' ? one : JSON.stringify(one)) });
    },
    /** Answers as the server does for a partition without an owner. */
    sayNobodyIsThere: () => deliver({ data: new Uint8Array(), headers: { code: 503 } as MsgHdrs }),
  };
}
