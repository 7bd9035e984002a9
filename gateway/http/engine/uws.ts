/**
 * The engine on uWebSockets.js. Its rules, each of them a crash or a hang when broken: `onAborted`
 * first, nothing of the request after the callback returns, nothing of the response after it ended
 * or aborted, writes inside `cork`, no Content-Length of our own.
 *
 * Its parser of chunked bodies takes what others refuse (a line that ends in LF alone, anything
 * where a CRLF belongs), so where such a body ends, a proxy in front may see differently. A request
 * with one is therefore the last of its connection.
 */
import { STATUS_CODES } from 'node:http';
import type { HttpRequest, HttpResponse, us_listen_socket } from 'uWebSockets.js';
import { Bodies, Body, type BodyResult } from './body.ts';
import {
  boundUrl,
  isBodiless,
  plainAddress,
  type Dispatch,
  type EngineOptions,
  type Exchange,
  type HttpEngine,
  type RequestHead,
} from './engine.ts';
import type { Reply, Sink } from './engine.ts';
import { emptyBag, judgeFraming, safeHeaderValue, takeHeader, type HeaderBag } from './guard.ts';
import type { UwsModule } from './uws-binary.ts';
import { limits } from '../../../schemas/limits.ts';

const listenExclusively = 1;

const statusLines = new Map(Object.entries(STATUS_CODES).map(([code, text]) => [Number(code), `${code} ${text}`]));
const text = (bytes: ArrayBuffer): string => Buffer.from(bytes).toString('latin1');

function headersOf(request: HttpRequest): HeaderBag {
  const bag = emptyBag();
  request.forEach((name, value) => takeHeader(bag, name, value));
  return bag;
}

/** How a connection goes on after a reply. */
type Ending = 'kept' | 'ended';

class UwsExchange implements Exchange {
  readonly head: RequestHead;
  readonly body: Body;
  aborted = false;
  readonly #response: HttpResponse;
  readonly #isLast: boolean;
  readonly #keepAliveRefused: () => boolean;
  readonly #onFinished: () => void;
  #onAborted: (() => void) | undefined;
  #onReplied: (() => void) | undefined;
  #isFinished = false;

  constructor(
    response: HttpResponse,
    request: { readonly head: RequestHead; readonly body: Body; readonly isLast: boolean },
    server: { readonly keepAliveRefused: () => boolean; readonly onFinished: () => void },
  ) {
    this.#response = response;
    this.head = request.head;
    this.body = request.body;
    this.#isLast = request.isLast;
    this.#keepAliveRefused = server.keepAliveRefused;
    this.#onFinished = server.onFinished;
  }

  /** The engine also calls this for a connection that a reply has ended. */
  abort(): void {
    if (this.#isFinished) return;
    this.aborted = true;
    this.body.abort();
    this.#onAborted?.();
    this.#finish();
  }

  #finish(): void {
    this.#isFinished = true;
    this.#onFinished();
    this.#onReplied?.();
  }

  whenFinished(listener: () => void): void {
    if (this.#isFinished) listener();
    else this.#onReplied = listener;
  }

  get bodyBytes(): number | undefined {
    return this.body.declaredBytes;
  }

  expectBody(maxBytes: number, client: string): void {
    this.body.expect(maxBytes, client);
  }

  claimBody(tenant: string): void {
    this.body.claim(tenant);
  }

  readBody(done: (body: BodyResult) => void): void {
    this.body.whenKnown(done);
  }

  reply(reply: Reply): void {
    this.body.discard();
    // What came in the same packet as the headers is read by then.
    if (!this.body.ended()) setImmediate(() => this.body.drain());
    this.body.whenEnded(() => {
      // Answered at once, what follows in the same packet would run before the connection is
      // closed; while a request is unanswered, it closes the connection.
      if (this.#isLast || !this.body.whole()) setImmediate(() => this.#corked(reply));
      else this.#corked(reply);
    });
  }

  #corked(reply: Reply): void {
    if (!this.aborted) this.#response.cork(() => this.#send(reply));
  }

  #send(reply: Reply): void {
    const response = this.#response;
    const ending: Ending = this.#isLast || this.#keepAliveRefused() || !this.body.whole() ? 'ended' : 'kept';
    this.#writeHead(reply);
    if (isBodiless(reply) || this.head.method === 'HEAD') {
      this.#sendNoBody(reply, ending);
    } else if (ending === 'ended' || reply.body.length < limits.replyWholeBytes) {
      response.end(reply.body, ending === 'ended');
    } else {
      this.#sendLarge(typeof reply.body === 'string' ? Buffer.from(reply.body) : reply.body);
      return;
    }
    this.#finish();
  }

  /**
   * Told a length, uWS waits for that many bytes and closes the connection at the next request;
   * told `undefined`, it writes a length of its own invention. So the length of HEAD is a header of
   * ours, and nothing is told.
   */
  #sendNoBody(reply: Reply, ending: Ending): void {
    const response = this.#response;
    if (ending === 'ended') {
      response.endWithoutBody(isBodiless(reply) ? 0 : Buffer.byteLength(reply.body), true);
      return;
    }
    if (!isBodiless(reply)) response.writeHeader('Content-Length', String(Buffer.byteLength(reply.body)));
    response.endWithoutBody();
  }

  #sendLarge(bytes: Uint8Array): void {
    const response = this.#response;
    const [, done] = response.tryEnd(bytes, bytes.byteLength);
    if (done) {
      this.#finish();
      return;
    }
    response.onWritable((offset) => {
      const [taken, whole] = response.tryEnd(bytes.subarray(offset), bytes.byteLength);
      if (whole) this.#finish();
      return taken;
    });
  }

  stream(reply: Omit<Reply, 'body'>): Sink {
    this.body.discard();
    const response = this.#response;
    let ended = false;
    response.cork(() => {
      this.#writeHead(reply);
    });
    return {
      write: (chunk) => {
        if (ended || this.aborted) return true;
        let room = true;
        response.cork(() => {
          room = response.write(chunk);
        });
        return room;
      },
      onDrain: (listener) =>
        void response.onWritable(() => {
          listener();
          return true;
        }),
      end: () => {
        if (ended || this.aborted) return;
        ended = true;
        const ending: Ending = this.#isLast || !this.body.whole() ? 'ended' : 'kept';
        this.#finish();
        // Not `end` with "close the connection": uWS would write that header into the body.
        if (ending === 'ended') response.close();
        else response.cork(() => response.end());
      },
    };
  }

  onAborted(listener: () => void): void {
    this.#onAborted = listener;
  }

  #writeHead(reply: Omit<Reply, 'body'>): void {
    const response = this.#response;
    response.writeStatus(statusLines.get(reply.status) ?? String(reply.status));
    for (let at = 0; at + 1 < reply.headers.length; at += 2) {
      response.writeHeader(reply.headers[at] ?? '', safeHeaderValue(reply.headers[at + 1] ?? ''));
    }
  }
}

export function uwsEngine(
  uws: UwsModule,
  dispatch: Dispatch,
  { clock, isTrusted, connections: connectionsMax }: EngineOptions,
): HttpEngine {
  const bodies = new Bodies(clock);
  let inFlight = 0;
  let connections = 0;
  let keepAliveRefused = false;
  let listening: us_listen_socket | undefined;
  const server = { keepAliveRefused: () => keepAliveRefused, onFinished: () => void inFlight-- };

  const accept = (response: HttpResponse, request: HttpRequest): void => {
    // Also called when we close a request that we refuse, before there is an exchange.
    let abort = (): void => {};
    response.onAborted(() => abort());
    const method = request.getCaseSensitiveMethod();
    const headers = headersOf(request);
    const framing = judgeFraming(method, headers);
    if (framing.kind === 'refused') {
      // Not a reply: after one, uWS would run what follows in the same packet as a request.
      response.close();
      return;
    }
    const framed = framing.kind === 'length' || framing.kind === 'chunked';
    const body = new Body(bodies, framing.kind === 'length' ? framing.bytes : framed ? undefined : 0);
    const head: RequestHead = {
      method,
      path: request.getUrl(),
      query: request.getQuery() ?? '',
      address: plainAddress(text(response.getRemoteAddressAsText())),
      headers,
    };
    inFlight++;
    const exchange = new UwsExchange(
      response,
      { head, body, isLast: framing.kind === 'unframed' || framing.kind === 'chunked' },
      server,
    );
    abort = () => exchange.abort();
    if (framed) {
      response.onData((piece, last) => {
        // At once: the parser does not stop for less until it has called us for all that it has
        // read.
        if (!body.push(new Uint8Array(piece), last)) response.close();
      });
    }
    dispatch(exchange);
  };

  const app = uws.App().any('/*', accept);
  app.filter((response, change) => {
    connections += change;
    // Of a connection that ends there is no address any more; so they are counted together, and
    // requests by client.
    if (change < 0 || connections <= connectionsMax) return;
    if (!isTrusted(plainAddress(text(response.getRemoteAddressAsText())))) response.close();
  });
  return {
    name: 'uws',
    inFlight: () => inFlight,
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        // The typings lack this form; the module has it.
        const listen = app.listen.bind(app) as unknown as (
          host: string,
          port: number,
          options: number,
          done: (socket: us_listen_socket | false) => void,
        ) => void;
        listen(host, port, listenExclusively, (socket) => {
          if (socket === false) {
            reject(new Error(`cannot listen on ${host}:${port}`));
            return;
          }
          listening = socket;
          bodies.start();
          resolve(boundUrl(host, uws.us_socket_local_port(socket)));
        });
      }),
    refuseKeepAlive: () => {
      keepAliveRefused = true;
    },
    stopListening: () => {
      if (listening !== undefined) uws.us_listen_socket_close(listening);
      listening = undefined;
    },
    close: () => {
      bodies.stop();
      app.close();
    },
  };
}
