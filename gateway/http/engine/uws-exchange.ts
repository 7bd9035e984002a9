/** One request on uWebSockets.js: its reply or its stream. The rules are in uws.ts. */
import { STATUS_CODES } from 'node:http';
import { KiB } from '../../../schemas/limits/units.ts';
import type { Body } from './body.ts';
import type { ClientSocket, ClientSocketListener } from './sockets/client-socket.ts';
import { isBodiless, type Reply, type RequestHead, type Sink } from './engine.ts';
import { EngineExchange } from './exchange.ts';
import { safeHeaderValue } from './guard.ts';
import type { Handshake } from './sockets/handshake.ts';
import type { Cork } from './sockets/uws-cork.ts';
import { UwsSocket } from './sockets/uws-socket.ts';
import type { HttpResponse, SocketContext } from './uws-module.ts';

/**
 * A larger reply is written as fast as the socket accepts it; a smaller one is copied into the
 * socket's buffer at once.
 */
const replyWholeBytes = 64 * KiB;

const statusLines = new Map(Object.entries(STATUS_CODES).map(([code, text]) => [Number(code), `${code} ${text}`]));

/** The state of a connection after a reply. */
type Ending = 'kept' | 'ended';

/** State that all exchanges of an engine share. */
export interface UwsServer {
  readonly keepAliveRefused: () => boolean;
  readonly onFinished: () => void;
  readonly handshakes: Pick<Cork, 'around'>;
}

export class UwsExchange extends EngineExchange {
  readonly #response: HttpResponse;
  readonly #isLast: boolean;
  readonly #asksToEnd: boolean;
  readonly #context: SocketContext | undefined;
  readonly #server: UwsServer;

  constructor(
    response: HttpResponse,
    request: {
      readonly head: RequestHead;
      readonly body: Body;
      /** Bytes that follow it must not run as a request. */
      readonly isLast: boolean;
      /** uWS sees a `close` that stands alone, and one in a list not. */
      readonly asksToEnd: boolean;
      readonly handshake?: Handshake | undefined;
      /** Of a request that may go on with WebSocket. */
      readonly context?: SocketContext | undefined;
    },
    server: UwsServer,
  ) {
    super(request.head, request.body, request.context === undefined ? undefined : request.handshake);
    this.#context = request.context;
    this.#response = response;
    this.#isLast = request.isLast;
    this.#asksToEnd = request.asksToEnd;
    this.#server = server;
  }

  /** uWS calls this also for a connection that a reply has ended. */
  abort(): void {
    if (this.isFinished) return;
    this.cutOff();
    this.finish();
  }

  protected override finish(): void {
    this.#server.onFinished();
    super.finish();
  }

  reply(reply: Reply): void {
    this.afterBody(() => {
      // If the reply were sent in this callback, the engine would run the bytes that follow in the
      // same packet as a request, before it closes the connection. While a request is unanswered,
      // such bytes end the connection.
      if (this.#isLast || !this.body.whole()) setImmediate(() => this.#corked(reply));
      else this.#corked(reply);
    });
  }

  #corked(reply: Reply): void {
    if (!this.aborted) this.#response.cork(() => this.#send(reply));
  }

  #send(reply: Reply): void {
    const response = this.#response;
    const isOver = this.#isLast || this.#asksToEnd || this.#server.keepAliveRefused() || !this.body.whole();
    const ending: Ending = isOver ? 'ended' : 'kept';
    this.#writeHead(reply);
    if (isBodiless(reply) || this.head.method === 'HEAD') {
      this.#sendNoBody(reply, ending);
    } else if (ending === 'ended' || reply.body.length < replyWholeBytes) {
      response.end(reply.body, ending === 'ended');
    } else {
      this.#sendLarge(typeof reply.body === 'string' ? Buffer.from(reply.body) : reply.body);
      return;
    }
    this.finish();
  }

  /**
   * Given a length, `endWithoutBody` waits for that many bytes and closes the connection at the
   * next request; given `undefined`, it writes a wrong length. So we write the Content-Length of
   * HEAD ourselves, and call it without an argument.
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
      this.finish();
      return;
    }
    response.onWritable((offset) => {
      const [taken, whole] = response.tryEnd(bytes.subarray(offset), bytes.byteLength);
      if (whole) this.finish();
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
        this.finish();
        // Not `end(…, true)`: uWS would write a `Connection: close` header into the body.
        if (ending === 'ended') response.close();
        else response.cork(() => response.end());
      },
    };
  }

  protected override goOn(
    protocol: string,
    headers: readonly string[],
    listener: ClientSocketListener,
  ): ClientSocket | undefined {
    const { handshake } = this;
    const context = this.#context;
    if (handshake === undefined || context === undefined) return undefined;
    const socket = new UwsSocket(listener);
    const response = this.#response;
    this.#server.handshakes.around(response, () => {
      this.#writeHead({ status: 101, headers });
      // Without extensions: windows count bytes as they are.
      response.upgrade({ socket }, handshake.key, protocol, '', context);
    });
    return socket;
  }

  #writeHead(reply: Omit<Reply, 'body'>): void {
    const response = this.#response;
    response.writeStatus(statusLines.get(reply.status) ?? String(reply.status));
    for (let at = 0; at + 1 < reply.headers.length; at += 2) {
      response.writeHeader(reply.headers[at] ?? '', safeHeaderValue(reply.headers[at + 1] ?? ''));
    }
  }
}
