/**
 * Asks from one partition's owner to another's, by the protocol of the gateways (schemas/messages.ts): one message, its
 * answers in parts. Whoever asks here looks again later, so what has no answer in time is left at that.
 */
import { createInbox, type NatsConnection } from '@nats-io/transport-node';
import { decodeAnswers, encodeAsk, encodeAsks, notOwner, type Answer, type Ask } from '../schemas/messages.ts';
import { subjects } from '../schemas/subjects.ts';

export interface PartitionClient {
  /** Never rejects. The answers that came in time, by the index of their ask. */
  ask(partition: number, asks: readonly Ask[], signal: AbortSignal): Promise<ReadonlyMap<number, Answer>>;
}

export interface PartitionClientOptions {
  readonly nc: NatsConnection;
  readonly timeoutMs: number;
  readonly onFault: (error: unknown) => void;
}

export const createPartitionClient = ({ nc, timeoutMs, onFault }: PartitionClientOptions): PartitionClient => ({
  ask: (partition, asks, signal) =>
    new Promise((resolve) => {
      const answers = new Map<number, Answer>();
      const reply = createInbox();
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        subscription.unsubscribe();
        resolve(answers);
      };
      const timer = setTimeout(end, timeoutMs);
      signal.addEventListener('abort', end, { once: true });
      const subscription = nc.subscribe(reply, {
        callback: (error, message) => {
          if (error !== null) return;
          const isNobody = message.data.length === 0 && message.headers?.code === 503;
          if (isNobody) {
            end();
            return;
          }
          const payload = message.string();
          // Another subscriber may be the owner, and answer yet.
          if (payload === notOwner) return;
          try {
            for (const answer of decodeAnswers(payload)) answers.set(answer.index, answer);
          } catch (cause) {
            onFault(cause);
          }
          if (answers.size >= asks.length) end();
        },
      });
      try {
        nc.publish(subjects.partition(partition), encodeAsks(asks.map(encodeAsk)), { reply });
      } catch (error) {
        onFault(error);
        end();
      }
    }),
});
