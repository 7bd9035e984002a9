/** A process in a sandbox: it connects, listens and sends as the test tells it. */
import { createSocket } from 'node:dgram';
import { createServer, connect } from 'node:net';
import { obey } from '../../../support/sandbox.ts';

const connectMs = 3000;
const received = new Map<number, string[]>();
const codeOf = (error: Error): string => (error as NodeJS.ErrnoException).code ?? error.message;

const orders = {
  /** `ok`, or the code of the error. */
  connect: (address: string, port: number, from?: string): Promise<string> =>
    new Promise((resolve) => {
      const socket = connect({ host: address, port, ...(from === undefined ? {} : { localAddress: from }) });
      const settle = (said: string): void => {
        socket.destroy();
        resolve(said);
      };
      socket.setTimeout(connectMs, () => settle('silent'));
      socket.once('error', (error) => settle(codeOf(error)));
      socket.once('connect', () => settle('ok'));
    }),
  /** Messages that have arrived on this UDP port. */
  heard: (port: number): Promise<string[]> => Promise.resolve(received.get(port) ?? []),
  /** Answers TCP, and hears UDP, on all addresses. */
  listen: async (port: number): Promise<void> => {
    const server = createServer((socket) => void socket.on('error', () => undefined).end('here'));
    await new Promise<void>((resolve) => server.listen(port, '::', resolve));
    received.set(port, []);
    for (const type of ['udp4', 'udp6'] as const) {
      const socket = createSocket({ type, ipv6Only: type === 'udp6' });
      socket.on('message', (text, { address }) => received.get(port)?.push(`${address} ${text.toString()}`));
      await new Promise<void>((resolve) => socket.bind(port, resolve));
    }
  },
  send: (address: string, port: number, text: string, from?: string): Promise<string> =>
    new Promise((resolve) => {
      const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
      const settle = (said: string): void => {
        socket.close();
        resolve(said);
      };
      socket.once('error', (error) => settle(codeOf(error)));
      socket.bind(0, from, () => {
        socket.send(text, port, address, (error) => settle(error === null ? 'ok' : codeOf(error)));
      });
    }),
};
export type Orders = typeof orders;

obey(orders);
