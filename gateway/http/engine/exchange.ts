/** The common part of all engines' exchanges: the body, and the listeners for the end. */
import type { Body } from './body.ts';
import type { ClientSocket, ClientSocketListener } from './sockets/client-socket.ts';
import type { Exchange, Reply, RequestHead, Sink } from './engine.ts';
import type { Handshake } from './sockets/handshake.ts';

export abstract class EngineExchange implements Exchange {
  readonly head: RequestHead;
  readonly body: Body;
  readonly handshake: Handshake | undefined;
  aborted = false;
  isUpgraded = false;
  protected isFinished = false;
  #onAborted: (() => void) | undefined;
  #onFinished: (() => void) | undefined;

  constructor(head: RequestHead, body: Body, handshake: Handshake | undefined) {
    this.head = head;
    this.body = body;
    this.handshake = handshake;
  }

  abstract reply(reply: Reply): void;
  abstract stream(reply: Omit<Reply, 'body'>): Sink;
  /** `listener` hears when the WebSocket is closed. */
  protected abstract goOn(
    protocol: string,
    headers: readonly string[],
    listener: ClientSocketListener,
  ): ClientSocket | undefined;

  upgrade(protocol: string, headers: readonly string[], listener: ClientSocketListener): ClientSocket | undefined {
    if (this.handshake === undefined) throw new Error('the request asks for no WebSocket');
    if (this.aborted) return undefined;
    this.isUpgraded = true;
    const socket = this.goOn(protocol, headers, {
      onMessage: (bytes, isBinary) => listener.onMessage(bytes, isBinary),
      onPong: () => listener.onPong(),
      onDrain: () => listener.onDrain(),
      onClose: () => {
        this.finish();
        listener.onClose();
      },
    });
    if (socket !== undefined) return socket;
    this.cutOff();
    this.finish();
    return undefined;
  }

  onAborted(listener: () => void): void {
    this.#onAborted = listener;
  }

  whenFinished(listener: () => void): void {
    if (this.isFinished) listener();
    else this.#onFinished = listener;
  }

  /** The client has left. */
  protected cutOff(): void {
    this.aborted = true;
    this.body.abort();
    this.#onAborted?.();
  }

  /** The reply has been written, or never will be. */
  protected finish(): void {
    this.isFinished = true;
    this.#onFinished?.();
  }

  /** Calls `send` when the body has ended, as a reply must not overtake it. */
  protected afterBody(send: () => void): void {
    this.body.discard();
    // By then the engine has read the bytes that came in the same packet as the headers.
    if (!this.body.ended()) setImmediate(() => this.body.drain());
    this.body.whenEnded(send);
  }
}
