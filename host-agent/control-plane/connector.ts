/** Connects to the control plane, and serves the connection. */
import type { NatsConnection } from '@nats-io/transport-node';
import { within } from '../../lib/time/backoff.ts';
import type { Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';

export interface Connector {
  run(signal: AbortSignal): Promise<void>;
  /** Closes the connection, and waits for what it served. */
  close(): Promise<void>;
}

export interface ConnectorParts {
  /** Tries until it is connected. */
  readonly open: () => Promise<NatsConnection>;
  /** Serves the connection until the signal of `run` aborts. */
  readonly serve: (nc: NatsConnection) => Promise<void>;
  readonly log: Log;
}

export function createConnector({ open, serve, log }: ConnectorParts): Connector {
  let connection: NatsConnection | undefined;
  let serving: Promise<void> = Promise.resolve();

  return {
    run: async (signal) => {
      const nc = await open();
      // The agent stopped while it was connecting.
      if (signal.aborted) return nc.close();
      connection = nc;
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
          log.warn('control_not_closed', { error }),
        );
      }
    },
  };
}
