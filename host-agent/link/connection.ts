/** The connection to the control plane: its requests, and whether they are answered. */
import type { NatsConnection } from '@nats-io/transport-node';
import type { Log } from '../../lib/log.ts';
import type { Answers } from '../../lib/nats/answers.ts';
import { within } from '../../lib/time/backoff.ts';
import { limits } from '../../schemas/limits.ts';

/**
 * A request to the control plane: subject, payload, timeout. Rejects without an answer in time, or
 * without a connection.
 */
export type Request = (subject: string, payload: string, timeoutMs: number) => Promise<Uint8Array>;

export interface Connection {
  readonly request: Request;
  /** A request was sent outside `request`. */
  asked(): void;
  /** An answer arrived outside `request`. */
  heard(): void;
  /** Connects again, with the current credentials. */
  reopen(): Promise<void>;
  /**
   * @param open tries until it is connected
   * @param serve serves the connection until the signal aborts
   */
  run(
    open: () => Promise<NatsConnection>,
    serve: (nc: NatsConnection) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void>;
  /** Closes the connection, and waits for the work that it served. */
  close(): Promise<void>;
}

export function createConnection(answers: Answers, log: Log): Connection {
  let connection: NatsConnection | undefined;
  let serving: Promise<void> = Promise.resolve();

  return {
    request: async (subject, payload, timeoutMs) => {
      if (connection === undefined) throw new Error('there is no connection to the control plane');
      answers.asked();
      const { data } = await connection.request(subject, payload, { timeout: timeoutMs });
      answers.heard();
      return data;
    },
    asked: () => answers.asked(),
    heard: () => answers.heard(),
    reopen: async () => connection?.reconnect(),
    run: async (open, serve, signal) => {
      const nc = await open();
      // The agent stopped while it was connecting.
      if (signal.aborted) return nc.close();
      connection = nc;
      answers.reconnected();
      serving = serve(nc);
      await serving;
    },
    close: async () => {
      const ends: readonly [string, Promise<void>][] = [
        ['closing the connection to NATS', connection?.close() ?? Promise.resolve()],
        ['ending what waits for the control plane', serving],
      ];
      for (const [what, ended] of ends) {
        await within(ended, limits.farewellMs, what).catch((error: unknown) =>
          log.warn('connection_close_failed', { error }),
        );
      }
    },
  };
}
