/** The connection to the control plane: requests on it, and whether anything answers them. */
import type { NatsConnection } from '@nats-io/transport-node';
import type { Clock } from '../../lib/time/clock.ts';
import { Answers } from '../../lib/nats/answers.ts';

/**
 * A request to the control plane: subject, payload, timeout. Rejects without an answer in time, or
 * without a connection.
 */
export type Request = (subject: string, payload: string, timeoutMs: number) => Promise<Uint8Array>;

export interface Line {
  readonly request: Request;
  /** From now on requests use this connection. */
  open(nc: NatsConnection): void;
  /** Requests reject until the next connection. */
  close(): void;
  /** The connection reached another server. */
  reconnected(): void;
  /** Something was asked outside `request`. */
  asked(): void;
  heard(): void;
  /** How long this connection has left a question unanswered; 0: none waits. */
  silentMs(): number;
}

/** @param answers counts over all connections */
export function createLine(answers: Answers, clock: Clock): Line {
  /** Of this connection alone. */
  const own = new Answers(clock);
  let connection: NatsConnection | undefined;

  const asked = (): void => {
    answers.asked();
    own.asked();
  };
  const heard = (): void => {
    answers.heard();
    own.heard();
  };
  return {
    request: async (subject, payload, timeoutMs) => {
      if (connection === undefined) throw new Error('there is no connection to the control plane');
      asked();
      const { data } = await connection.request(subject, payload, { timeout: timeoutMs });
      heard();
      return data;
    },
    open: (nc) => {
      connection = nc;
      answers.reconnected();
      own.reconnected();
    },
    close: () => {
      connection = undefined;
    },
    reconnected: () => own.reconnected(),
    asked,
    heard,
    silentMs: () => own.silentMs(),
  };
}
