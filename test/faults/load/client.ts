/**
 * A client of the API on keep-alive connections, as a load balancer or an SDK uses them. A request
 * goes to one gateway, with a deadline; the result says whether it was certainly not sent.
 */
import { Agent, request, type ClientRequest } from 'node:http';

/** Longer than a gateway takes at most, so that its own 504 comes first. */
export const clientDeadlineMs = 12_000;

export type Heard =
  | { readonly kind: 'answer'; readonly status: number; readonly body: unknown; readonly etag: string | undefined }
  /** `sent: false`: there was no connection, so nothing was executed. */
  | { readonly kind: 'broken'; readonly sent: boolean; readonly why: string; readonly onKeptConnection: boolean };

export interface HttpClient {
  send(call: HttpCall): Promise<Heard>;
  close(): void;
}

export interface HttpCall {
  readonly baseUrl: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly token: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export function createHttpClient(connections: number): HttpClient {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  return {
    send: (call) =>
      new Promise((resolve) => {
        const bytes = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body));
        const outgoing: ClientRequest = request(call.baseUrl + call.path, {
          agent,
          method: call.method,
          headers: {
            authorization: `Bearer ${call.token}`,
            ...(bytes === undefined ? {} : { 'content-type': 'application/json', 'content-length': bytes.length }),
            ...call.headers,
          },
        });
        let isConnected = false;
        const broken = (why: string): void =>
          settle({ kind: 'broken', sent: isConnected, why, onKeptConnection: outgoing.reusedSocket });
        const timer = setTimeout(() => {
          broken(`no answer within ${clientDeadlineMs} ms`);
          outgoing.destroy();
        }, clientDeadlineMs);
        const settle = (heard: Heard): void => {
          clearTimeout(timer);
          resolve(heard);
        };
        outgoing.once('socket', (socket) => {
          if (!socket.connecting) isConnected = true;
          else socket.once('connect', () => (isConnected = true));
        });
        outgoing.on('error', (error: NodeJS.ErrnoException) => broken(error.code ?? error.message));
        outgoing.once('response', (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', (error: NodeJS.ErrnoException) => broken(error.code ?? error.message));
          response.once('end', () => {
            try {
              const body: unknown = JSON.parse(Buffer.concat(chunks).toString() || 'null');
              settle({ kind: 'answer', status: response.statusCode ?? 0, body, etag: response.headers.etag });
            } catch {
              broken('the answer is not JSON');
            }
          });
        });
        outgoing.end(bytes);
      }),
    close: () => agent.destroy(),
  };
}
