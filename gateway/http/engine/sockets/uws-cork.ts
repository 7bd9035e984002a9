/**
 * The cork that WebSocket handshakes are written in. uWS warns on standard error about a handshake
 * outside any cork. Inside the cork of its own response it reads freed memory afterwards, and now
 * and then takes the new WebSocket for a request with `Connection: close` and ends it without a
 * close frame (uNetworking/uWebSockets#1929, mended after the release that we pin). Inside the cork
 * of another response it does neither. So one connection to ourselves waits for a reply that never
 * comes, and its response gives its cork.
 */
import { randomUUID } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import type { HttpResponse, TemplatedApp } from 'uWebSockets.js';
import { limits } from '../../../../schemas/limits.ts';
import { sleep, within } from '../../../../lib/time/backoff.ts';

export class LentCork {
  /** Nobody else can send this request. */
  readonly #path = `/${randomUUID()}`;
  #lender: HttpResponse | undefined;
  #onLender: () => void = () => {};
  #connection: Socket | undefined;
  readonly #stopping = new AbortController();

  /** Before the routes of the app. */
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
    await within(lent, limits.lentCorkMs, 'a connection to ourselves').catch(() => undefined);
  }

  /** How many connections are not a client's. */
  connections(): number {
    return this.#lender === undefined ? 0 : 1;
  }

  /** Calls `write` once, now. */
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
      await sleep(limits.lentCorkMs, signal);
    }
  }
}
