/**
 * The part of uWebSockets.js that the gateway uses. The packages of its binary have no types; the
 * project's documentation describes these.
 */

/** Text, or bytes of which uWebSockets.js makes a copy. */
export type Writable = string | Uint8Array;

declare const listening: unique symbol;
declare const context: unique symbol;

/** A listening socket. */
export interface ListenSocket {
  readonly [listening]: true;
}

/** Names the WebSocket routes of an app, for `upgrade`. */
export interface SocketContext {
  readonly [context]: true;
}

/** Valid only until the callback that is given it returns. */
export interface HttpRequest {
  getCaseSensitiveMethod(): string;
  getUrl(): string;
  /** Without its `?`; undefined if the URL has none. */
  getQuery(): string | undefined;
  /** '' if there is no such header. @param name in lower case */
  getHeader(name: string): string;
  forEach(each: (name: string, value: string) => void): void;
}

/** Valid until it has ended or its connection has. */
export interface HttpResponse {
  writeStatus(status: string): HttpResponse;
  writeHeader(name: string, value: string): HttpResponse;
  /** False if the bytes wait for the client. */
  write(chunk: Writable): boolean;
  end(body?: Writable, closesConnection?: boolean): HttpResponse;
  endWithoutBody(contentLength?: number, closesConnection?: boolean): HttpResponse;
  /** `taken`: all bytes of the piece were sent. `whole`: so was the whole body. */
  tryEnd(piece: Uint8Array, contentLength: number): [taken: boolean, whole: boolean];
  /** @param listener gets how many bytes of the body have been taken */
  onWritable(listener: (offset: number) => boolean): HttpResponse;
  onAborted(listener: () => void): HttpResponse;
  /** @param listener gets bytes that are taken back when it returns */
  onData(listener: (piece: ArrayBuffer, isLast: boolean) => void): HttpResponse;
  /** 4 or 16 bytes, or none once the connection has ended. */
  getRemoteAddress(): ArrayBuffer;
  /** Writes of the callback leave in one packet. */
  cork(write: () => void): HttpResponse;
  upgrade<Data>(data: Data, key: string, protocol: string, extensions: string, context: SocketContext): void;
  /** Ends the connection at once. */
  close(): HttpResponse;
}

export interface WebSocket<Data> {
  getUserData(): Data;
  /** 0: it waits for the client. 1: sent. 2: dropped, too much waits. */
  send(message: Writable, isBinary: boolean): number;
  /** In bytes. */
  getBufferedAmount(): number;
  ping(): number;
  end(code: number, reason: string): void;
}

export interface WebSocketBehavior<Data> {
  /** In bytes. */
  readonly maxPayloadLength: number;
  /** In bytes. */
  readonly maxBackpressure: number;
  /** In seconds. */
  readonly idleTimeout: number;
  readonly sendPingsAutomatically: boolean;
  readonly upgrade?: (response: HttpResponse, request: HttpRequest, context: SocketContext) => void;
  readonly open?: (socket: WebSocket<Data>) => void;
  readonly message?: (socket: WebSocket<Data>, message: ArrayBuffer, isBinary: boolean) => void;
  readonly drain?: (socket: WebSocket<Data>) => void;
  readonly pong?: (socket: WebSocket<Data>) => void;
  readonly close?: (socket: WebSocket<Data>) => void;
}

export interface TemplatedApp {
  get(pattern: string, handler: (response: HttpResponse, request: HttpRequest) => void): TemplatedApp;
  any(pattern: string, handler: (response: HttpResponse, request: HttpRequest) => void): TemplatedApp;
  ws<Data>(pattern: string, behavior: WebSocketBehavior<Data>): TemplatedApp;
  /** @param listener gets 1 for a connection that begins, and −1 for one that has ended */
  filter(listener: (response: HttpResponse, change: number) => void): TemplatedApp;
  listen(host: string, port: number, options: number, done: (socket: ListenSocket | false) => void): TemplatedApp;
  close(): TemplatedApp;
}

export interface UwsModule {
  App(): TemplatedApp;
  us_listen_socket_close(socket: ListenSocket): void;
  us_socket_local_port(socket: ListenSocket): number;
}
