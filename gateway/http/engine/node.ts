/**
 * The engine on node:http: slower and stricter than uWebSockets.js, and available wherever Node is.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Server as NetServer, type AddressInfo, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { limits } from '../../../schemas/limits.ts';
import { Bodies, Body } from './body.ts';
import {
  boundUrl,
  isBodiless,
  plainAddress,
  type Dispatch,
  type EngineOptions,
  type HttpEngine,
  type Reply,
  type RequestHead,
  type Sink,
} from './engine.ts';
import { EngineExchange } from './exchange.ts';
import { emptyBag, judgeFraming, safeHeaderValue, takeHeader, type HeaderBag } from './guard.ts';
import { handshakeOf, type Handshake } from './sockets/handshake.ts';
import { giveBack, NodeSockets, responseOn, type TakenConnection } from './sockets/node-upgrade.ts';

/** With node:http, the time for the head of a request, and for all of it. */
const requestHeadMs = 10_000;
const requestWholeMs = 30_000;

const nothing = new Uint8Array(0);

function headersOf(request: IncomingMessage): HeaderBag {
  const bag = emptyBag();
  const { rawHeaders } = request;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    takeHeader(bag, (rawHeaders[at] ?? '').toLowerCase(), rawHeaders[at + 1] ?? '');
  }
  return bag;
}

/** RFC 9112 section 3.2.2: the URL may be whole, and its host counts instead of the header's. */
const wholeUrl = /^https?:\/\/([^/?#]*)/i;

/** As an origin has it: from its path on. */
function urlOf({ url = '/' }: IncomingMessage, headers: HeaderBag): string {
  const [origin, host] = wholeUrl.exec(url) ?? [];
  if (origin === undefined) return url;
  headers.host = host ?? '';
  const rest = url.slice(origin.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

function headOf(request: IncomingMessage, url: string, headers: HeaderBag, isMalformed: boolean): RequestHead {
  const mark = url.indexOf('?');
  return {
    method: request.method ?? '',
    path: mark < 0 ? url : url.slice(0, mark),
    query: mark < 0 ? '' : url.slice(mark + 1),
    address: plainAddress(request.socket.remoteAddress ?? ''),
    headers,
    isMalformed,
  };
}

/** Goes on with WebSocket; returns `undefined` if the client has left. */
type GoOn = EngineExchange['upgrade'];

class NodeExchange extends EngineExchange {
  readonly #response: ServerResponse;
  readonly #lastOfConnection: () => boolean;
  readonly #goOn: GoOn;
  readonly #onFinished: () => void;

  constructor(
    onFinished: () => void,
    request: { readonly head: RequestHead; readonly body: Body; readonly handshake: Handshake | undefined },
    response: ServerResponse,
    lastOfConnection: () => boolean,
    goOn: GoOn,
  ) {
    super(request.head, request.body, request.handshake);
    this.#onFinished = onFinished;
    this.#goOn = goOn;
    this.#response = response;
    this.#lastOfConnection = lastOfConnection;
    response.once('close', () => {
      if (this.isUpgraded) return;
      if (!response.writableFinished) this.cutOff();
      this.finish();
    });
  }

  protected override finish(): void {
    this.#onFinished();
    super.finish();
  }

  protected override goOn(...parts: Parameters<GoOn>): ReturnType<GoOn> {
    return this.#goOn(...parts);
  }

  reply(reply: Reply): void {
    this.afterBody(() => {
      if (this.aborted) return;
      const bytes = typeof reply.body === 'string' ? Buffer.from(reply.body) : reply.body;
      const length = isBodiless(reply) ? [] : ['content-length', String(bytes.byteLength)];
      this.#response.writeHead(reply.status, [...reply.headers.map(safeHeaderValue), ...length, ...this.#connection()]);
      // node:http itself omits the body for HEAD, 204 and 304.
      this.#response.end(bytes);
      // If the client stops reading, the timeout destroys the socket.
      if (this.#response.writableLength > 0) this.#response.setTimeout(limits.idleTimeoutMs);
    });
  }

  stream(reply: Omit<Reply, 'body'>): Sink {
    this.body.discard();
    const response = this.#response;
    response.writeHead(reply.status, [...reply.headers, ...this.#connection()]);
    response.flushHeaders();
    return {
      write: (text) => response.write(text),
      onDrain: (listener) => void response.on('drain', listener),
      end: () => void response.end(),
    };
  }

  #connection(): string[] {
    return !this.body.whole() || this.#lastOfConnection() ? ['connection', 'close'] : [];
  }
}

const handshakeIn = (request: IncomingMessage, headers: HeaderBag): Handshake | undefined => {
  const method = request.method ?? '';
  return handshakeOf(method, headers, judgeFraming(method, headers).kind === 'empty');
};

const refusal = (status: string): string => `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`;

export function nodeEngine(
  dispatch: Dispatch,
  { clock, isTrusted, connections: connectionsMax }: EngineOptions,
): HttpEngine {
  const bodies = new Bodies(clock);
  let inFlight = 0;
  let connections = 0;
  let arrivals = 0;
  let keepAliveRefused = false;

  // Connections whose last request has arrived: a further request that the parser finds in the same
  // packet is ignored.
  const over = new WeakSet<Socket>();
  const known = new WeakSet<Socket>();
  const unanswered = new WeakMap<Socket, number>();

  const sockets = new NodeSockets();
  /** Connections that node:http does not know any more. */
  const taken = new Set<Duplex>();

  const accept = (request: IncomingMessage, response: ServerResponse, connection?: TakenConnection): void => {
    const { socket } = request;
    if (over.has(socket)) return;
    const headers = headersOf(request);
    const url = urlOf(request, headers);
    const framing = judgeFraming(request.method ?? '', headers);
    const isMalformed = framing.kind === 'refused';
    const isLast = isMalformed || framing.kind === 'unframed';
    if (isLast) over.add(socket);
    const framed = framing.kind === 'length' || framing.kind === 'chunked';
    const body = new Body(bodies, framing.kind === 'length' ? framing.bytes : framed ? undefined : 0);
    if (framed) {
      request.on('data', (piece: Buffer) => {
        if (!body.push(piece, false)) socket.destroy();
      });
      request.on('end', () => void body.push(nothing, true));
      request.on('error', () => body.abort());
    }
    inFlight++;
    arrivals++;
    unanswered.set(socket, (unanswered.get(socket) ?? 0) + 1);
    const exchange = new NodeExchange(
      () => {
        inFlight--;
        unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1);
      },
      {
        head: headOf(request, url, headers, isMalformed),
        body,
        handshake: connection === undefined ? undefined : handshakeIn(request, headers),
      },
      response,
      () => keepAliveRefused || isLast || connection !== undefined,
      (protocol, more, listener) => {
        if (connection === undefined) return undefined;
        response.detachSocket(socket);
        return sockets.open(connection, protocol, more, listener);
      },
    );
    dispatch(exchange);
  };

  const take = (connection: TakenConnection): void => {
    const { request, socket } = connection;
    // A handshake behind a request without a reply: uWebSockets.js ends the connection, too.
    if (over.has(request.socket) || (unanswered.get(request.socket) ?? 0) > 0) {
      socket.destroy();
      return;
    }
    if (handshakeIn(request, headersOf(request)) === undefined) {
      giveBack(server, connection);
      return;
    }
    taken.add(socket);
    socket.once('close', () => taken.delete(socket));
    accept(request, responseOn(connection), connection);
  };

  const server: Server = createServer(
    {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: requestHeadMs,
      requestTimeout: requestWholeMs,
      keepAliveTimeout: limits.idleTimeoutMs,
      connectionsCheckingInterval: 2_000,
      noDelay: true,
    },
    (request, response) => accept(request, response),
  );
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => take({ request, socket, head }));
  server.on('connection', (socket: Socket) => {
    // It was given back.
    if (known.has(socket)) return;
    known.add(socket);
    connections++;
    arrivals++;
    socket.once('close', () => connections--);
    if (connections > connectionsMax && !isTrusted(plainAddress(socket.remoteAddress ?? ''))) socket.destroy();
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable) return socket.destroy();
    // The connection ends with the reply to its last request; what follows that is not read.
    if (over.has(socket as Socket)) return;
    const tooLong = error.code === 'HPE_HEADER_OVERFLOW';
    return socket.end(refusal(tooLong ? '431 Request Header Fields Too Large' : '400 Bad Request'));
  });

  return {
    name: 'node',
    inFlight: () => inFlight,
    arrivals: () => arrivals,
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen({ host, port, backlog: 1024 }, () => {
          server.off('error', reject);
          bodies.start();
          resolve(boundUrl(host, (server.address() as AddressInfo).port));
        });
      }),
    refuseKeepAlive: () => {
      keepAliveRefused = true;
    },
    // Not `server.close()`: in node:http it also resets idle connections, on which a request may be
    // on its way. These end with their next reply, or when the drain is over.
    stopListening: () => void NetServer.prototype.close.call(server),
    close: () => {
      bodies.stop();
      server.close();
      server.closeAllConnections();
      for (const socket of taken) socket.destroy();
    },
  };
}
