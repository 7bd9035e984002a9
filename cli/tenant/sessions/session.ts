/**
 * The client's end of a session over WebSocket (docs/api.md, "Exec and port-forward"): it sends no
 * more than the gateway has room for, and reports why the session ended.
 */
import type { Writable } from 'node:stream';
import { WebSocket } from 'ws';
import { limits } from '../../../schemas/limits.ts';
import { ApiError, ConnectionError, InterruptedError } from '../../client/errors.ts';
import { numberIn, textIn, valuesIn } from '../../../lib/values.ts';
import type { Context } from '../../context.ts';

/** The time for a WebSocket to open. */
const clientSessionOpenMs = 20_000;

export interface SessionEnd {
  readonly code: number;
  readonly reason: string;
}

/**
 * Opens a session, paused: what comes with the handshake waits for listeners, and for `resume`.
 * @throws ApiError if the server refuses, ConnectionError if it can't be reached, InterruptedError
 */
export function openSession(
  { server, token, terminal: { signal } }: Context,
  path: string,
  protocol: string,
): Promise<WebSocket> {
  const url = `${server.replace(/^http/, 'ws')}${path}`;
  const socket = new WebSocket(url, protocol, {
    headers: { authorization: `Bearer ${token}` },
    handshakeTimeout: clientSessionOpenMs,
    perMessageDeflate: false,
  });
  const leave = (): void => socket.terminate();
  signal.addEventListener('abort', leave, { once: true });
  return new Promise((resolve, reject) => {
    socket.once('open', () => {
      signal.removeEventListener('abort', leave);
      socket.pause();
      resolve(socket);
    });
    socket.once('unexpected-response', (request, answer) => {
      const chunks: Buffer[] = [];
      // At the end of the answer the request has given it back, to be kept for another one.
      const { socket: connection } = answer;
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('end', () => {
        request.destroy();
        connection.destroy();
        const { statusCode: status = 0, headers } = answer;
        reject(
          new ApiError(
            { status, headers: new Headers(headers as Record<string, string>) },
            parsed(Buffer.concat(chunks)),
          ),
        );
      });
    });
    socket.once('error', (error) =>
      reject(signal.aborted ? new InterruptedError() : new ConnectionError(server, error)),
    );
  });
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString()) as unknown;
  } catch {
    return bytes.toString();
  }
}

/** Messages of the host and the gateway; a later release may have more. */
export function saidIn(message: Buffer) {
  const { type, code, bytes, message: text } = valuesIn(parsed(message));
  return { type: textIn(type), code: numberIn(code), bytes: numberIn(bytes), message: textIn(text) };
}

/** Resolves when the session has ended. */
export const endOf = (socket: WebSocket): Promise<SessionEnd> =>
  new Promise((resolve) => {
    let failure = '';
    socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() || failure }));
    socket.on('error', (error) => {
      failure = error.message;
      socket.terminate();
    });
  });

/** Writes received bytes. Reads nothing more until they are taken, which stops the other end. */
export function pour(socket: WebSocket, to: Writable, bytes: Buffer): void {
  if (to.write(bytes)) return;
  socket.pause();
  to.once('drain', () => socket.resume());
}

/** Bytes to send, and the room for them at the other end. */
export class Upstream {
  readonly #send: (bytes: Buffer) => void;
  readonly #onRoom: () => void;
  readonly #waiting: Buffer[] = [];
  #room: number = limits.tunnelWindowBytes;
  #onEmpty: (() => void) | undefined;

  /** @param onRoom called when all that was written is sent */
  constructor(send: (bytes: Buffer) => void, onRoom: () => void) {
    this.#send = send;
    this.#onRoom = onRoom;
  }

  /** False if the bytes wait, and the source should wait for `onRoom`. */
  write(bytes: Buffer): boolean {
    this.#waiting.push(bytes);
    this.#pump();
    return this.#waiting.length === 0;
  }

  grant(bytes: number): void {
    this.#room += bytes;
    const waited = this.#waiting.length > 0;
    this.#pump();
    if (waited && this.#waiting.length === 0) this.#onRoom();
  }

  /** Calls back once everything is sent. */
  whenEmpty(then: () => void): void {
    if (this.#waiting.length === 0) then();
    else this.#onEmpty = then;
  }

  #pump(): void {
    for (let first = this.#waiting[0]; first !== undefined && this.#room > 0; first = this.#waiting[0]) {
      const part = first.subarray(0, Math.min(this.#room, limits.tunnelMessageBytes));
      this.#room -= part.length;
      this.#send(part);
      if (part.length === first.length) this.#waiting.shift();
      else this.#waiting[0] = first.subarray(part.length);
    }
    if (this.#waiting.length > 0) return;
    this.#onEmpty?.();
    this.#onEmpty = undefined;
  }
}
