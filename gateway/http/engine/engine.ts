/**
 * What the gateway needs of an HTTP server, so that there can be two: uWebSockets.js where its
 * binary loads, node:http elsewhere. The same contract tests run on both.
 */
import type { Clock } from '../../../lib/time/clock.ts';
import type { BodyResult } from './body.ts';
import type { RequestHeaders } from './guard.ts';

/** Everything of a request but its body, copied out of the engine before its callback returns. */
export interface RequestHead {
  readonly method: string;
  /** As sent, percent-encoding intact, without the query. */
  readonly path: string;
  /** As sent, without the question mark. */
  readonly query: string;
  /** Of the socket's other end; IPv4 in its own form. */
  readonly address: string;
  readonly headers: RequestHeaders;
}

export interface Reply {
  readonly status: number;
  /** Name, value, name, value... Content-Length and Connection are the engine's. */
  readonly headers: readonly string[];
  readonly body: string | Uint8Array;
}

/** RFC 9110 section 6.4.1: these never have a body, and no length of one. */
export const isBodiless = ({ status }: Pick<Reply, 'status'>): boolean => status === 204 || status === 304;

/** The writing side of a reply that goes on (Server-Sent Events). */
export interface Sink {
  /** False when the client is slower than we: write no more until `onDrain` calls. */
  write(text: string): boolean;
  onDrain(listener: () => void): void;
  end(): void;
}

export interface Exchange {
  readonly head: RequestHead;
  /** How long the client says that the body is; undefined where only its end will tell. */
  readonly bodyBytes: number | undefined;
  /**
   * How much of the body will be wanted, 0 for none of it, and whose share of the memory for bodies
   * it takes; said before the dispatch returns. Default: `limits.bodyBytes`, of a client without a
   * name.
   */
  expectBody(maxBytes: number, client: string): void;
  /** The tenant whose share it takes, too. */
  claimBody(tenant: string): void;
  /**
   * Calls back once, with the whole body or as soon as it is known to be of no use; never after an
   * abort.
   */
  readBody(done: (body: BodyResult) => void): void;
  /**
   * Once, unless `stream` was called. After an abort it does nothing. HEAD, 204 and 304 lose their
   * body here. Where the request's body has not come whole, and does not soon, the connection ends
   * with the reply: what is still on the wire must not run as a request.
   */
  reply(reply: Reply): void;
  /**
   * Instead of `reply`. Where the request's body has not come whole, the connection ends with the
   * stream.
   */
  stream(reply: Omit<Reply, 'body'>): Sink;
  /**
   * Calls back once the reply has been written, or never will be; at once where that is past. At
   * most one listener.
   */
  whenFinished(listener: () => void): void;
  readonly aborted: boolean;
  /** The client went away before the reply was whole. At most one listener. */
  onAborted(listener: () => void): void;
}

export interface EngineOptions {
  readonly clock: Clock;
  /** More are closed as they come. */
  readonly connections: number;
  /**
   * Whether an address is a proxy's, which is accepted even where there are too many connections.
   */
  readonly isTrusted: (address: string) => boolean;
}

/** Must not throw. */
export type Dispatch = (exchange: Exchange) => void;

export const engineNames = ['uws', 'node'] as const;
export type EngineName = (typeof engineNames)[number];

export interface HttpEngine {
  readonly name: EngineName;
  /** Requests whose reply is not yet whole. */
  inFlight(): number;
  /** Port 0: any free one. Resolves to the URL that was bound. */
  listen(host: string, port: number): Promise<string>;
  /** From now on every reply ends its connection. */
  refuseKeepAlive(): void;
  stopListening(): void;
  /** Cuts what is left. */
  close(): void;
}

export const boundUrl = (host: string, port: number): string =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}`;

const mappedText = '::ffff:';
/** uWebSockets.js writes every IPv6 address in full. */
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
