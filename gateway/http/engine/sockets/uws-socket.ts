/** A WebSocket on uWebSockets.js. It must not be touched after its `close` callback. */
import { limits } from '../../../../schemas/limits.ts';
import type { WebSocket, WebSocketBehavior } from '../uws-module.ts';
import type { ClientSocket, ClientSocketListener } from './client-socket.ts';
import { KiB, seconds } from '../../../../schemas/limits/units.ts';

/** Room for what a client has not read yet: a window, and the frames around it. */
const webSocketBufferBytes = 1024 * KiB;
/** uWS ends a WebSocket without traffic after this time; the gateway itself does so sooner. */
const webSocketIdleMs = 120 * seconds;

/** The data of a connection, set at the handshake. */
export interface UwsSocketData {
  readonly socket: UwsSocket;
}

export class UwsSocket implements ClientSocket {
  readonly listener: ClientSocketListener;
  #ws: WebSocket<UwsSocketData> | undefined;

  constructor(listener: ClientSocketListener) {
    this.listener = listener;
  }

  opened(ws: WebSocket<UwsSocketData>): void {
    this.#ws = ws;
  }

  closed(): void {
    this.#ws = undefined;
    this.listener.onClose();
  }

  send(message: string | Uint8Array): boolean {
    const ws = this.#ws;
    if (ws === undefined) return true;
    // Never dropped: windows keep what is on its way below what uWS buffers.
    return ws.send(message, typeof message !== 'string') === sent && ws.getBufferedAmount() === 0;
  }

  ping(): void {
    this.#ws?.ping();
  }

  close(code: number, reason: string): void {
    this.#ws?.end(code, reason);
  }
}

const sent = 1;

/** The callbacks of uWS for the WebSockets of an app. */
export const socketCallbacks: WebSocketBehavior<UwsSocketData> = {
  maxPayloadLength: limits.webSocketMessageBytes,
  maxBackpressure: webSocketBufferBytes,
  idleTimeout: webSocketIdleMs / 1000,
  sendPingsAutomatically: false,
  open: (ws) => ws.getUserData().socket.opened(ws),
  message: (ws, message, isBinary) =>
    // uWS takes the bytes back when this returns.
    ws.getUserData().socket.listener.onMessage(new Uint8Array(message.slice(0)), isBinary),
  drain: (ws) => {
    if (ws.getBufferedAmount() === 0) ws.getUserData().socket.listener.onDrain();
  },
  pong: (ws) => ws.getUserData().socket.listener.onPong(),
  close: (ws) => ws.getUserData().socket.closed(),
};
