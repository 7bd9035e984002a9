/** A process in a sandbox: it connects, listens and sends as the test tells it. */
import { createSocket } from 'node:dgram';
import { createServer, connect } from 'node:net';

export type Order =
  | { readonly kind: 'connect'; readonly address: string; readonly port: number; readonly from: string | undefined }
  | { readonly kind: 'listen'; readonly port: number }
  | { readonly kind: 'heard'; readonly port: number }
  | {
      readonly kind: 'send';
      readonly address: string;
      readonly port: number;
      readonly text: string;
      readonly from: string | undefined;
    };

const connectMs = 3000;
const heard = new Map<number, string[]>();
const codeOf = (error: Error): string => (error as NodeJS.ErrnoException).code ?? error.message;

const tryConnect = (address: string, port: number, from: string | undefined): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect({ host: address, port, ...(from === undefined ? {} : { localAddress: from }) });
    const settle = (said: string): void => {
      socket.destroy();
      resolve(said);
    };
    socket.setTimeout(connectMs, () => settle('silent'));
    socket.once('error', (error) => settle(codeOf(error)));
    socket.once('connect', () => settle('ok'));
  });

async function listen(port: number): Promise<string> {
  const server = createServer((socket) => void socket.on('error', () => undefined).end('here'));
  await new Promise<void>((resolve) => server.listen(port, '::', resolve));
  heard.set(port, []);
  for (const type of ['udp4', 'udp6'] as const) {
    const socket = createSocket({ type, ipv6Only: type === 'udp6' });
    socket.on('message', (text, { address }) => heard.get(port)?.push(`${address} ${text.toString()}`));
    await new Promise<void>((resolve) => socket.bind(port, resolve));
  }
  return 'ok';
}

const send = (address: string, port: number, text: string, from: string | undefined): Promise<string> =>
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
  });

async function obey(order: Order): Promise<unknown> {
  switch (order.kind) {
    case 'connect':
      return tryConnect(order.address, order.port, order.from);
    case 'listen':
      return listen(order.port);
    case 'heard':
      return heard.get(order.port) ?? [];
    case 'send':
      return send(order.address, order.port, order.text, order.from);
  }
}

process.on('message', (message: { readonly number: number; readonly order: Order }) => {
  void obey(message.order).then((value) => process.send?.({ number: message.number, value }));
});
process.on('disconnect', () => process.exit(0));
