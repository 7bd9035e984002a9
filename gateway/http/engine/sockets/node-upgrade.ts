/**
 * Requests that ask for another protocol. node:http hands such a connection over. We answer a
 * WebSocket handshake; any other such request goes back to node:http as an ordinary one, because
 * clients may ask so with every first request (`h2c`).
 */
import { ServerResponse, type IncomingMessage, type Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type RawData, type WebSocket } from 'ws';
import { limits } from '../../../../schemas/limits.ts';
import type { ClientSocket, ClientSocketListener } from './client-socket.ts';

/** A connection that node:http has let go of, and the first bytes behind the request. */
export interface TakenConnection {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
}

const isWish = (name: string): boolean => name === 'upgrade' || name === 'connection' || name === 'http2-settings';

/** Gives the connection back to the server, as if the client had had no wish. */
export function giveBack(server: Server, { request, socket, head }: TakenConnection): void {
  const { rawHeaders, method = '', url = '', httpVersion } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (!isWish(name.toLowerCase())) lines.push(`${name}: ${rawHeaders[at + 1] ?? ''}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit('connection', socket);
}

/** The reply to a handshake that is refused; the connection ends with it. */
export function responseOn({ request, socket }: TakenConnection): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket as Parameters<ServerResponse['assignSocket']>[0]);
  response.once('finish', () => {
    response.detachSocket(socket as Parameters<ServerResponse['detachSocket']>[0]);
    socket.end();
    response.emit('close');
  });
  // Otherwise a reset of the connection would end the process.
  socket.on('error', () => socket.destroy());
  return response;
}

/** Goes on with WebSocket on connections that were taken. */
export class NodeSockets {
  readonly #chosen = new WeakMap<IncomingMessage, { readonly protocol: string; readonly headers: readonly string[] }>();
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: limits.webSocketMessageBytes,
    handleProtocols: (_offered, request) => this.#chosen.get(request)?.protocol ?? false,
  });

  constructor() {
    this.#server.on('headers', (lines, request) => {
      const { headers = [] } = this.#chosen.get(request) ?? {};
      for (let at = 0; at + 1 < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
    });
  }

  /** `undefined` if the connection has ended meanwhile. */
  open(
    { request, socket, head }: TakenConnection,
    protocol: string,
    headers: readonly string[],
    listener: ClientSocketListener,
  ): ClientSocket | undefined {
    this.#chosen.set(request, { protocol, headers });
    let opened: ClientSocket | undefined;
    this.#server.handleUpgrade(request, socket, head, (ws) => (opened = clientSocketOf(ws, socket, listener)));
    return opened;
  }
}

function clientSocketOf(ws: WebSocket, socket: Duplex, listener: ClientSocketListener): ClientSocket {
  ws.on('message', (data: RawData, isBinary) => listener.onMessage(data as Buffer, isBinary));
  ws.on('pong', () => listener.onPong());
  // The close that follows says why.
  ws.on('error', () => undefined);
  ws.once('close', () => listener.onClose());
  socket.on('drain', () => listener.onDrain());
  return {
    send: (message) => {
      if (ws.readyState !== ws.OPEN) return true;
      ws.send(message, { binary: typeof message !== 'string' });
      return !socket.writableNeedDrain;
    },
    ping: () => {
      if (ws.readyState === ws.OPEN) ws.ping();
    },
    close: (code, reason) => ws.close(code, reason),
  };
}
