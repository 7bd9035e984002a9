/** A NATS connection as every program wants it: it waits for the server at start, and never gives up reconnecting. */
import { readFileSync } from 'node:fs';
import { connect, credsAuthenticator, type Authenticator, type NatsConnection } from '@nats-io/transport-node';
import { limits } from '../schemas/limits.ts';
import type { Log } from './log.ts';

export interface NatsOptions {
  readonly servers: readonly string[];
  readonly name: string;
  readonly authenticator?: Authenticator;
  readonly inboxPrefix?: string;
  /** Certificate authority of the servers; TLS is then required from the first byte. */
  readonly tlsCaFile?: string;
  /** Callers wait meanwhile: a server that is away is noticed sooner, at the price of more pings. */
  readonly isUrgent?: boolean;
}

export const credentialsFile = (path: string): Authenticator => credsAuthenticator(new Uint8Array(readFileSync(path)));

/**
 * Requests that are in flight when a connection breaks are not refused by the client: whoever waits for an answer needs a
 * deadline of its own.
 */
export async function connectNats(options: NatsOptions, log: Log): Promise<NatsConnection> {
  const nc = await connect({
    servers: [...options.servers],
    name: options.name,
    waitOnFirstConnect: true,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    reconnectJitter: 250,
    pingInterval: options.isUrgent === true ? limits.natsPingUrgentMs : limits.natsPingMs,
    maxPingOut: 2,
    timeout: options.isUrgent === true ? limits.natsConnectUrgentMs : limits.natsConnectMs,
    noAsyncTraces: true,
    ignoreAuthErrorAbort: true,
    ...(options.authenticator === undefined ? {} : { authenticator: options.authenticator }),
    ...(options.inboxPrefix === undefined ? {} : { inboxPrefix: options.inboxPrefix }),
    ...(options.tlsCaFile === undefined ? {} : { tls: { caFile: options.tlsCaFile, handshakeFirst: true } }),
  });
  void watch(nc, log);
  return nc;
}

async function watch(nc: NatsConnection, log: Log): Promise<void> {
  for await (const status of nc.status()) {
    switch (status.type) {
      case 'disconnect':
      case 'reconnect':
        log.warn(`nats_${status.type}`, { server: status.server });
        break;
      case 'error':
        log.warn('nats_error', { error: status.error });
        break;
      case 'staleConnection':
      case 'slowConsumer':
      case 'ldm':
        log.warn(`nats_${status.type}`);
        break;
      default:
        break;
    }
  }
}
