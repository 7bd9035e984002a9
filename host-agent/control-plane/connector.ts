/**
 * Connects to the control plane, one connection after another: other credentials mean other
 * subjects and another inbox.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { within } from '../../lib/time/backoff.ts';
import type { Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import type { Credentials } from './identity/credentials.ts';

export interface Connector {
  run(signal: AbortSignal): Promise<void>;
  /** Closes the connection, and waits for what it served. */
  close(): Promise<void>;
}

export interface ConnectorParts {
  /** Tries until it is connected. */
  readonly open: () => Promise<NatsConnection>;
  /** Serves a connection until another is needed. */
  readonly serve: (nc: NatsConnection) => Promise<void>;
  readonly credentials: Pick<Credentials, 'hasFallback' | 'fallBack'>;
  /** How long bound credentials have to connect where earlier ones are left. */
  readonly boundConnectMs: number;
  readonly log: Log;
}

export function createConnector(parts: ConnectorParts): Connector {
  const { credentials, log } = parts;
  let connection: NatsConnection | undefined;
  let serving: Promise<void> = Promise.resolve();

  /** Undefined: no server accepted these credentials; the earlier ones are next. */
  const openOrFallBack = async (): Promise<NatsConnection | undefined> => {
    const opening = parts.open();
    if (!credentials.hasFallback()) return opening;
    try {
      return await within(opening, parts.boundConnectMs, 'connecting with bound credentials');
    } catch (error) {
      log.error('bound_credentials_unanswered', { error });
      credentials.fallBack();
      // The attempt continues with the other credentials; close the connection that it opens.
      void opening.then((nc) => nc.close()).catch(() => undefined);
      return undefined;
    }
  };

  return {
    run: async (signal) => {
      while (!signal.aborted) {
        const nc = await openOrFallBack();
        if (nc === undefined) continue;
        // The agent stopped while it was connecting.
        if (signal.aborted) return nc.close();
        connection = nc;
        serving = parts.serve(nc);
        await serving;
        if (!signal.aborted) await nc.close();
      }
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
