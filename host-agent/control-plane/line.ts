/** The connection to the control plane: requests on it, and whether anything answers them. */
import type { NatsConnection } from '@nats-io/transport-node';
import type { Answers } from '../../lib/nats/answers.ts';

/**
 * A request to the control plane: subject, payload, timeout. Rejects without an answer in time, or
 * without a connection.
 */
export type Request = (subject: string, payload: string, timeoutMs: number) => Promise<Uint8Array>;

export interface Line {
  readonly request: Request;
  /** From now on requests use this connection. */
  open(nc: NatsConnection): void;
  /** Connects again, with the credentials of now. */
  reopen(): Promise<void>;
  /** Something was asked outside `request`. */
  asked(): void;
  heard(): void;
}

export function createLine(answers: Answers): Line {
  let connection: NatsConnection | undefined;
  return {
    request: async (subject, payload, timeoutMs) => {
      if (connection === undefined) throw new Error('there is no connection to the control plane');
      answers.asked();
      const { data } = await connection.request(subject, payload, { timeout: timeoutMs });
      answers.heard();
      return data;
    },
    open: (nc) => {
      connection = nc;
      answers.reconnected();
    },
    reopen: async () => connection?.reconnect(),
    asked: () => answers.asked(),
    heard: () => answers.heard(),
  };
}
