/**
 * The NATS connection of every program: it waits for the server at start, never gives up
 * reconnecting, and leaves a server that does not answer for another.
 */
import {
  AuthorizationError,
  UserAuthenticationExpiredError,
  connect,
  credsAuthenticator,
  type Authenticator,
  type NatsConnection,
} from '@nats-io/transport-node';
import type { Registry } from 'prom-client';
import { limits } from '../../schemas/limits.ts';
import type { BackoffBounds } from '../time/backoff.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import type { Answers } from './answers.ts';
import { Dials } from './dials.ts';
import { readCredentials } from './key-files.ts';
import { keepInboxPrefix } from './inbox.ts';
import { commonPrefix, counter, record } from '../metric-table.ts';
import type { Log } from '../log.ts';
import Type from 'typebox';
import { decoder } from '../decode.ts';

/** Interval at which the connection is judged. */
export const natsSilenceLookMs = 500;

/** A server that does not answer two pings in a row is away, and another is tried. */
const natsPingMs = 5000;
/** The same for gateways and actors, whose callers wait meanwhile. */
const natsPingUrgentMs = 1000;
const natsConnectUrgentMs = 2000;
/**
 * If requests have no answer for this long, the server may be cut off from the others, and
 * another is tried.
 */
const natsSilentMs = 20_000;
/** Unanswered pings in a row after which a server counts as away. */
const natsPingsUnanswered = 2;

export interface NatsOptions {
  readonly servers: readonly string[];
  readonly name: string;
  readonly authenticator?: Authenticator;
  /** Credentials in place of an authenticator; answers arrive in the inbox of their user. */
  readonly credsFile?: string;
  readonly inboxPrefix?: string;
  /** Certificate authority of the servers. If set, TLS is required from the first byte. */
  readonly tlsCaFile?: string;
  /**
   * Callers wait for answers, so the connection pings more often to notice an absent server sooner.
   */
  readonly isUrgent?: boolean;
  /**
   * Tracks asks and answers over the connection. If absent, the connection stays with its server
   * while that answers pings.
   */
  readonly answers?: Answers;
  /** Called when the connection moved to another server. */
  readonly onMove?: () => void;
  /** Called for each dial after which a server refused the credentials. */
  readonly onRefused?: () => void;
}

export const credentialsFile = (path: string): Authenticator =>
  credsAuthenticator(new TextEncoder().encode(readCredentials(path)));

const decodeSubject = decoder(Type.Object({ sub: Type.Optional(Type.String()) }));

/** The public key of the user that the credentials are for; `undefined` if the file has none. */
function userOf(creds: string): string | undefined {
  const [, claims] = /-----BEGIN NATS USER JWT-----\s*[\w-]+\.([\w-]+)\./.exec(creds) ?? [];
  if (claims === undefined) return undefined;
  return decodeSubject(Buffer.from(claims, 'base64url')).sub;
}

/** The user of the connection, and the prefix of its inbox. */
function identityOf({ authenticator, credsFile, inboxPrefix }: NatsOptions) {
  if (credsFile === undefined) {
    return {
      ...(authenticator === undefined ? {} : { authenticator }),
      ...(inboxPrefix === undefined ? {} : { inboxPrefix }),
    };
  }
  const creds = readCredentials(credsFile);
  const user = userOf(creds);
  return {
    authenticator: credsAuthenticator(new TextEncoder().encode(creds)),
    ...(user === undefined ? {} : { inboxPrefix: subjects.userInbox(user) }),
  };
}

/**
 * When a connection breaks, the client does not reject the requests in flight, so callers need a
 * deadline of their own.
 */
export async function connectNats(options: NatsOptions, log: Log): Promise<NatsConnection> {
  // Before the first connection nats.js tells nothing: this is all that is known then.
  let isUntold = true;
  const dials = new Dials({
    isUrgent: options.isUrgent === true,
    onRefused: () => {
      options.onRefused?.();
      if (isUntold) log.warn('nats_refused', { servers: options.servers, reason: 'the credentials are not accepted' });
      isUntold = false;
    },
  });
  const { authenticator, ...identity } = identityOf(options);
  const nc = await connect({
    servers: [...options.servers],
    name: options.name,
    waitOnFirstConnect: true,
    maxReconnectAttempts: -1,
    reconnectDelayHandler: dials.waitMs,
    pingInterval: options.isUrgent === true ? natsPingUrgentMs : natsPingMs,
    maxPingOut: natsPingsUnanswered,
    timeout: options.isUrgent === true ? natsConnectUrgentMs : limits.natsConnectMs,
    noAsyncTraces: true,
    ignoreAuthErrorAbort: true,
    reconnectToServer: dials.next,
    ...identity,
    ...(authenticator === undefined ? {} : { authenticator: announced(authenticator, () => dials.asked()) }),
    ...(options.tlsCaFile === undefined ? {} : { tls: { caFile: options.tlsCaFile, handshakeFirst: true } }),
  });
  if (identity.inboxPrefix !== undefined) keepInboxPrefix(nc, identity.inboxPrefix);
  isUntold = false;
  dials.connected();
  void watch(nc, log, dials);
  if (options.answers !== undefined) leaveWhenSilent(nc, dials, options, options.answers, log);
  return nc;
}

/** Tells when a server asks for the credentials. */
const announced =
  (authenticator: Authenticator, tell: () => void): Authenticator =>
  (nonce) => {
    tell();
    return authenticator(nonce);
  };

function leaveWhenSilent(
  nc: NatsConnection,
  dials: Dials,
  { servers, isUrgent, onMove }: NatsOptions,
  answers: Answers,
  log: Log,
): void {
  const silentMs = isUrgent === true ? limits.natsSilentUrgentMs : natsSilentMs;
  // The only server is busy, not cut off from others. To connect again would cost it more than the
  // answers that it owes, and a fleet that does brings it down.
  const isAlone = (): boolean => Math.max(servers.length, nc.info?.connect_urls?.length ?? 0) <= 1;
  const bounds = (): BackoffBounds => ({
    minMs: isAlone() ? limits.natsSilentMaxMs : silentMs,
    maxMs: limits.natsSilentMaxMs,
  });
  let isConnected = true;
  let spread = Math.random();
  const timer = setInterval(() => {
    if (!isConnected || !answers.isMoveDue(bounds(), spread)) return;
    const server = nc.getServer();
    log.warn('nats_silent', { server, silentMs: Math.round(answers.silentMs()) });
    spread = Math.random();
    dials.avoid(server);
    answers.moved();
    onMove?.();
    nc.reconnect().catch((error: unknown) => log.warn('nats_reconnect_failed', { server, error }));
  }, natsSilenceLookMs).unref();
  void (async () => {
    for await (const { type } of nc.status()) {
      if (type === 'disconnect') isConnected = false;
      if (type !== 'reconnect') continue;
      isConnected = true;
      answers.reconnected();
    }
  })();
  void nc.closed().then(() => clearInterval(timer));
}

export const natsMetrics = {
  failovers: counter('nats_failovers_total', {
    help: 'Times that the program moved from a NATS server that did not answer to another.',
    watch:
      'Any: a NATS server was cut off from the others, or nothing behind it answered for long: see the runbook, “Isolated NATS server”.',
  }),
};

/** Counts the failovers of a program's connection. */
export const countFailovers = (registry: Registry): (() => void) =>
  record(registry, commonPrefix, natsMetrics).failovers;

/** The library has no class of its own for revoked credentials. */
const isRefusal = (error: Error): boolean =>
  error instanceof AuthorizationError ||
  error instanceof UserAuthenticationExpiredError ||
  /authentication revoked/i.test(error.message);

/** nats.js tells of each dial in vain as of another loss of the connection: the first is logged. */
async function watch(nc: NatsConnection, log: Log, dials: Dials): Promise<void> {
  let isConnected = true;
  let said: string | undefined;
  for await (const status of nc.status()) {
    switch (status.type) {
      case 'disconnect':
        if (isConnected) log.warn('nats_disconnected', { server: status.server });
        isConnected = false;
        break;
      case 'reconnect':
        dials.connected();
        if (!isConnected) log.warn('nats_reconnected', { server: status.server });
        isConnected = true;
        said = undefined;
        break;
      case 'error': {
        const { error } = status;
        if (!isRefusal(error)) {
          log.warn('nats_error', { error });
          break;
        }
        dials.refused();
        if (said !== error.message) log.warn('nats_refused', { server: nc.getServer(), reason: error.message });
        said = error.message;
        break;
      }
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
