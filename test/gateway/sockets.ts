/** Raw connections to a server under test, from addresses of the loopback network. */
import { connect, type Socket } from 'node:net';
import { until } from '../support/until.ts';

export interface RawConnection {
  readonly socket: Socket;
  /** All that came back. */
  text(): string;
  closed(): boolean;
  /** Status of the first reply; `undefined` before it came. */
  status(): number | undefined;
}

/** Sends the text as soon as it is connected. */
export function openRaw(url: string, sent: string, localAddress = '127.0.0.1'): RawConnection {
  const { hostname, port } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, localAddress });
  let text = '';
  let closed = false;
  socket.on('data', (data) => (text += data.toString('latin1')));
  socket.on('close', () => (closed = true));
  socket.on('error', () => (closed = true));
  socket.write(sent);
  const status = (): number | undefined => {
    const code = /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1];
    return code === undefined ? undefined : Number(code);
  };
  return { socket, text: () => text, closed: () => closed, status };
}

/** The status of the reply; 0 where the connection ended without one. */
export async function statusOf(url: string, sent: string, localAddress?: string): Promise<number> {
  const connection = openRaw(url, sent, localAddress);
  await until('a reply', () => connection.status() !== undefined || connection.closed());
  connection.socket.destroy();
  return connection.status() ?? 0;
}

/** A request with no more of its body than is given. */
export const halfPost = (path: string, headers: Readonly<Record<string, string>>, part = ''): string =>
  [
    `POST ${path} HTTP/1.1`,
    'Host: a',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    '',
    part,
  ].join('\r\n');

export const get = (path: string, token?: string): string =>
  [`GET ${path} HTTP/1.1`, 'Host: a', ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]), '', ''].join(
    '\r\n',
  );
