/**
 * The gateway's interface to an HTTP server. There are two: uWebSockets.js where its binary loads,
 * node:http elsewhere. The same contract tests run on both.
 */
import type { Clock } from '../../../lib/time/clock.ts';
import type { Body } from './body.ts';
import type { ClientSocket, ClientSocketListener } from './sockets/client-socket.ts';
import type { RequestHeaders } from './guard.ts';
import type { Handshake } from './sockets/handshake.ts';

/** A request without its body, copied out of the engine before its callback returns. */
export interface RequestHead {
  readonly method: string;
  /** As sent, percent-encoding intact, without the query. */
  readonly path: string;
  /** As sent, without the question mark. */
  readonly query: string;
  /** The address of the socket's other end; IPv4 in its own form. */
  readonly address: string;
  readonly headers: RequestHeaders;
  /** It breaks HTTP's rules, or could be read in two ways; the engine passes on no body of it. */
  readonly isMalformed: boolean;
}

export interface Reply {
  readonly status: number;
  /** Name, value, name, value... The engine adds Content-Length and Connection. */
  readonly headers: readonly string[];
  readonly body: string | Uint8Array;
}

/** RFC 9110 section 6.4.1: these never have a body, nor a Content-Length. */
export const isBodiless = ({ status }: Pick<Reply, 'status'>): boolean => status === 204 || status === 304;

/** The writing side of a streamed reply (Server-Sent Events). */
export interface Sink {
  /** False if the client reads more slowly than we write: write no more until `onDrain` calls. */
  write(text: string): boolean;
  onDrain(listener: () => void): void;
  end(): void;
}

export interface Exchange {
  readonly head: RequestHead;
  /**
   * `expect` is called before the dispatch returns; after an abort `whenKnown` never calls back.
   */
  readonly body: Pick<Body, 'declaredBytes' | 'expect' | 'claim' | 'whenKnown'>;
  /**
   * Sends the reply. Called once, unless `stream` was called; does nothing after an abort. Drops
   * the reply's body for HEAD, 204 and 304. If the request's body has not arrived completely, and
   * does not soon, the connection ends with the reply: bytes still on the wire must not run as a
   * request.
   */
  reply(reply: Reply): void;
  /**
   * Begins a stream, instead of `reply`. If the request's body has not arrived completely, the
   * connection ends with the stream.
   */
  stream(reply: Omit<Reply, 'body'>): Sink;
  /** `undefined` if the client does not ask for a WebSocket. */
  readonly handshake: Handshake | undefined;
  /**
   * Goes on with WebSocket, instead of `reply`; for an exchange with a handshake, once. Returns
   * `undefined` if the client has left. The exchange is finished when the WebSocket is closed.
   */
  upgrade(protocol: string, headers: readonly string[], listener: ClientSocketListener): ClientSocket | undefined;
  readonly isUpgraded: boolean;
  /**
   * Calls back once the reply has been written or never will be; at once if that has happened
   * already. At most one listener.
   */
  whenFinished(listener: () => void): void;
  readonly aborted: boolean;
  /** Calls back if the client leaves before the reply is complete. At most one listener. */
  onAborted(listener: () => void): void;
}

export interface EngineOptions {
  readonly clock: Clock;
  /** Further connections are closed as they arrive. */
  readonly connections: number;
  /**
   * True for the address of a proxy; proxies are accepted even if there are too many connections.
   */
  readonly isTrusted: (address: string) => boolean;
}

/** Must not throw. */
export type Dispatch = (exchange: Exchange) => void;

export const engineNames = ['uws', 'node'] as const;
export type EngineName = (typeof engineNames)[number];

export interface HttpEngine {
  readonly name: EngineName;
  /** Number of requests that have no complete reply yet. */
  inFlight(): number;
  /** Connections and requests that came so far. */
  arrivals(): number;
  /** Port 0: any free port. Resolves to the URL that was bound. */
  listen(host: string, port: number): Promise<string>;
  /** From now on every reply ends its connection. */
  refuseKeepAlive(): void;
  stopListening(): void;
  /** Closes the connections that are left. */
  close(): void;
}

export const boundUrl = (host: string, port: number): string =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}`;

const mappedText = '::ffff:';
/** The same in full, as some proxies write it. */
const mappedInFull = /^(?:0000:){5}ffff:([0-9a-f]{2})([0-9a-f]{2}):([0-9a-f]{2})([0-9a-f]{2})$/;

/**
 * A socket that listens on both families shows IPv4 peers as IPv4-mapped IPv6 addresses (RFC 4291
 * section 2.5.5.2): `::ffff:192.0.2.1` is 192.0.2.1.
 */
export function plainAddress(address: string): string {
  if (address.startsWith(mappedText) && address.includes('.')) return address.slice(mappedText.length);
  const octets = mappedInFull.exec(address)?.slice(1);
  return octets === undefined ? address : octets.map((octet) => Number.parseInt(octet, 16)).join('.');
}
