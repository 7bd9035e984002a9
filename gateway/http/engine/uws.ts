/**
 * The engine on uWebSockets.js. Breaking one of these rules is a crash or a hang: register
 * `onAborted` first; do not touch the request after the callback returns, nor the response after it
 * ended or aborted; write inside `cork`; send no Content-Length of our own.
 *
 * Its parser of chunked bodies accepts what others refuse (a line that ends in LF alone, anything
 * in place of a CRLF), so a proxy in front may see the end of such a body elsewhere. A request with
 * chunks is therefore the last of its connection.
 */
import { Bodies, Body } from './body.ts';
import { boundUrl, type Dispatch, type EngineOptions, type HttpEngine, type RequestHead } from './engine.ts';
import { emptyBag, judgeFraming, takeHeader, type HeaderBag } from './guard.ts';
import { asksToEnd, handshakeOf } from './sockets/handshake.ts';
import { addressReader } from './uws-address.ts';
import { UwsExchange } from './uws-exchange.ts';
import type { UwsLoaded } from './uws-binary.ts';
import type { HttpRequest, HttpResponse, ListenSocket, SocketContext, TemplatedApp } from './uws-module.ts';
import { LentCork, ownCork } from './sockets/uws-cork.ts';
import { socketCallbacks } from './sockets/uws-socket.ts';

const listenExclusively = 1;

const addressIn = addressReader();
const addressOf = (response: HttpResponse): string => addressIn(response.getRemoteAddress());

function headersOf(request: HttpRequest): HeaderBag {
  const bag = emptyBag();
  request.forEach((name, value) => takeHeader(bag, name, value));
  return bag;
}

/** Resolves to the socket; no other process can listen on the same port. */
function listenOn(app: TemplatedApp, host: string, port: number): Promise<ListenSocket> {
  return new Promise((resolve, reject) => {
    app.listen(host, port, listenExclusively, (socket) => {
      if (socket === false) reject(new Error(`cannot listen on ${host}:${port}: the address or port is in use`));
      else resolve(socket);
    });
  });
}

export function uwsEngine(
  { uws, binary }: UwsLoaded,
  dispatch: Dispatch,
  { clock, isTrusted, connections: connectionsMax }: EngineOptions,
): HttpEngine {
  const bodies = new Bodies(clock);
  let inFlight = 0;
  let connections = 0;
  let arrivals = 0;
  let keepAliveRefused = false;
  let listening: ListenSocket | undefined;
  const handshakes = binary.readsFreedMemory ? new LentCork() : ownCork;
  const server = { keepAliveRefused: () => keepAliveRefused, onFinished: () => void inFlight--, handshakes };

  const accept = (response: HttpResponse, request: HttpRequest, context?: SocketContext): void => {
    // uWS also calls this when `accept` refuses the request, before there is an exchange.
    let abort = (): void => {};
    response.onAborted(() => abort());
    const method = request.getCaseSensitiveMethod();
    const headers = headersOf(request);
    const framing = judgeFraming(method, headers);
    const framed = framing.kind === 'length' || framing.kind === 'chunked';
    const body = new Body(bodies, framing.kind === 'length' ? framing.bytes : framed ? undefined : 0);
    const head: RequestHead = {
      method,
      path: request.getUrl(),
      query: request.getQuery() ?? '',
      address: addressOf(response),
      headers,
      isMalformed: framing.kind === 'refused',
    };
    // uWS takes any value of five letters for `close`, and a handshake on such a connection would
    // be a crash.
    const endsByItself = context !== undefined && request.getHeader('connection').length === 'close'.length;
    inFlight++;
    arrivals++;
    const exchange = new UwsExchange(
      response,
      {
        head,
        body,
        isLast: framing.kind !== 'empty' && framing.kind !== 'length',
        asksToEnd: asksToEnd(headers),
        handshake: endsByItself ? undefined : handshakeOf(method, headers, framing.kind === 'empty'),
        context,
      },
      server,
    );
    abort = () => exchange.abort();
    if (framed) {
      response.onData((piece, last) => {
        // Only `close` stops the parser from calling for each piece that it has already read.
        if (!body.push(new Uint8Array(piece), last)) response.close();
      });
    }
    dispatch(exchange);
  };

  const app = uws.App();
  handshakes.register(app);
  // uWS calls `upgrade` for a GET with a key of a WebSocket, whatever its other headers say.
  app.any('/*', (response, request) => accept(response, request)).ws('/*', { ...socketCallbacks, upgrade: accept });
  app.filter((response, change) => {
    connections += change;
    if (change > 0) arrivals++;
    // A connection that has ended has no address any more, so connections can't be counted by
    // client and the bound is on all of them; requests are counted by client.
    if (change < 0 || connections - handshakes.connections() <= connectionsMax) return;
    if (!isTrusted(addressOf(response))) response.close();
  });
  return {
    name: 'uws',
    inFlight: () => inFlight,
    arrivals: () => arrivals,
    listen: async (host, port) => {
      listening = await listenOn(app, host, port);
      bodies.start();
      const url = boundUrl(host, uws.us_socket_local_port(listening));
      await handshakes.open(url);
      return url;
    },
    refuseKeepAlive: () => {
      keepAliveRefused = true;
    },
    stopListening: () => {
      if (listening !== undefined) uws.us_listen_socket_close(listening);
      listening = undefined;
    },
    close: () => {
      bodies.stop();
      handshakes.close();
      app.close();
    },
  };
}
