/**
 * The cork that WebSocket handshakes are written in. uWS warns on standard error about a handshake
 * outside any cork. Releases before 20.69.0 read freed memory after a handshake inside the cork of
 * its own response, and now and then take the new WebSocket for a request with `Connection: close`
 * and end it without a close frame (uNetworking/uWebSockets#1929). Inside the cork of another
 * response they do neither. So one connection to ourselves waits for a reply that never comes, and
 * its response gives its cork.
 */
import { randomUUID } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { sleep, within } from '../../../../lib/time/backoff.ts';
import type { HttpResponse, TemplatedApp } from '../uws-module.ts';

/** The time of a gateway's connection to itself, and between two attempts to have one. */
const lentCorkMs = 1000;

/** Writes handshakes inside a cork. */
export interface Cork {
  /** Before the routes of the app. */
  register(app: TemplatedApp): void;
  /** Resolves when handshakes can be written. */
  open(url: string): Promise<void>;
  /** Number of connections that are not a client's. */
  connections(): number;
  /** Calls `write` once, now. */
  around(response: HttpResponse, write: () => void): void;
  close(): void;
}

/** The response's own, for releases that have the fault mended. */
export const ownCork: Cork = {
  register: () => {},
  open: () => Promise.resolve(),
  connections: () => 0,
  around: (response, write) => void response.cork(write),
  close: () => {},
};

export class LentCork implements Cork {
  /** Nobody else can send this request. */
  readonly #path = `/${randomUUID()}`;
  #lender: HttpResponse | undefined;
  #onLender: () => void = () => {};
  #connection: Socket | undefined;
  readonly #stopping = new AbortController();

  register(app: TemplatedApp): void {
    app.get(this.#path, (response) => {
      response.onAborted(() => (this.#lender = undefined));
      this.#lender = response;
      this.#onLender();
    });
  }

  /**
   * Resolves when there is a lender, or after a time without: then handshakes are written as if
   * there were none of this.
   */
  async open(url: string): Promise<void> {
    const lent = new Promise<void>((resolve) => (this.#onLender = resolve));
    void this.#stayConnected(new URL(url));
    await within(lent, lentCorkMs, 'a connection to ourselves').catch(() => undefined);
  }

  connections(): number {
    return this.#lender === undefined ? 0 : 1;
  }

  around(response: HttpResponse, write: () => void): void {
    (this.#lender ?? response).cork(write);
  }

  close(): void {
    this.#stopping.abort();
    this.#connection?.destroy();
  }

  async #stayConnected({ hostname, port }: URL): Promise<void> {
    const { signal } = this.#stopping;
    const host = hostname.replace(/^\[(.*)\]$/, '$1');
    while (!signal.aborted) {
      const connection = connect({ host, port: Number(port) }).unref();
      this.#connection = connection;
      connection.on('error', () => undefined);
      connection.resume().write(`GET ${this.#path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
      await new Promise((resolve) => connection.once('close', resolve));
      await sleep(lentCorkMs, signal);
    }
  }
}
