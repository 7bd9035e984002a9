/**
 * Asks from one partition's owner to another's, by the protocol of the gateways
 * (schemas/wire/codec.ts): one message, its answers in parts. Whoever asks here looks again
 * later, so what has no answer in time is left at that.
 */
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { inboxOf } from '../nats/inbox.ts';
import type { Ask } from '../../schemas/wire/asks.ts';
import { decodeAnswers, encodeAsk, encodeAsks, notOwner, type Answer } from '../../schemas/wire/codec.ts';
import { subjects } from '../../schemas/wire/subjects.ts';

export interface PartitionClient {
  /** Never rejects. The answers that came in time, by the index of their ask. */
  ask(partition: number, asks: readonly Ask[]): Promise<ReadonlyMap<number, Answer>>;
  /** Waits for nothing any more. */
  stop(): void;
}

export interface PartitionClientOptions {
  readonly nc: NatsConnection;
  readonly timeoutMs: number;
  readonly onFault: (error: unknown) => void;
}

export function createPartitionClient({ nc, timeoutMs, onFault }: PartitionClientOptions): PartitionClient {
  const waiting = new Set<() => void>();
  return {
    ask: (partition, asks) =>
      new Promise((resolve) => {
        const answers = new Map<number, Answer>();
        const reply = inboxOf(nc);
        const end = (): void => {
          if (!waiting.delete(end)) return;
          clearTimeout(timer);
          subscription?.unsubscribe();
          resolve(answers);
        };
        const take = (message: Msg): void => {
          const isNobodyThere = message.data.length === 0 && message.headers?.code === 503;
          for (const answer of isNobodyThere ? [] : decodeAnswers(message.string())) {
            // Another subscriber may be the owner, and answer yet.
            if (answer.code !== notOwner) answers.set(answer.index, answer);
          }
          if (isNobodyThere || answers.size >= asks.length) end();
        };
        const callback = (error: Error | null, message: Msg): void => {
          if (error !== null) return;
          try {
            take(message);
          } catch (cause) {
            onFault(cause);
          }
        };
        waiting.add(end);
        const timer = setTimeout(end, timeoutMs);
        let subscription: Subscription | undefined;
        try {
          subscription = nc.subscribe(reply, { callback });
          nc.publish(subjects.partition(partition), encodeAsks(asks.map(encodeAsk)), { reply });
        } catch (error) {
          onFault(error);
          end();
        }
      }),
    stop() {
      for (const end of [...waiting]) end();
    },
  };
}
