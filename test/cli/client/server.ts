/** A far end of the client: it answers from a script, and keeps what it was asked. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Scripted {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Reaction to a request: an answer, or the socket in the hands of the test. */
export type Reaction = Scripted | ((response: ServerResponse, asked: Asked) => void);

export const breaks: Reaction = (response) => void response.socket?.destroy();

/** The last reaction is repeated. */
export async function farEnd(t: Test, ...script: readonly [Reaction, ...Reaction[]]) {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request;
      const one = { method, path, headers, body: Buffer.concat(chunks).toString() };
      const reaction = script[Math.min(asked.length, script.length - 1)] ?? script[0];
      asked.push(one);
      if (typeof reaction === 'function') return reaction(response, one);
      response.writeHead(reaction.status, { 'content-type': 'application/json', ...reaction.headers });
      response.end(reaction.body === undefined ? undefined : JSON.stringify(reaction.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}
