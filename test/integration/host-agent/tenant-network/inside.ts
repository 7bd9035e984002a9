/** A process in a sandbox: it connects, listens and sends as the test tells it. */
import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { createServer, connect } from 'node:net';
import { obey } from '../../../support/sandbox.ts';

const connectMs = 3000;
const askMs = 2000;
const datagramsAtOnce = 100;
const pouring: (() => void)[] = [];
let poured = 0;
const received = new Map<number, string[]>();
const codeOf = (error: Error): string => (error as NodeJS.ErrnoException).code ?? error.message;

const orders = {
  /** Addresses of a name, as text, or the code of the error. */
  ask: async (servers: readonly string[], name: string, type: 'A' | 'AAAA'): Promise<string> => {
    const resolver = new Resolver({ timeout: askMs, tries: 2 });
    resolver.setServers(servers);
    try {
      return (await resolver.resolve(name, type)).join();
    } catch (error) {
      return codeOf(error as Error);
    }
  },
  /**
   * Opens connections, and writes these bytes to each as fast as it takes them, until `rest`.
   * @returns how many connections are open
   */
  pour: async (address: string, port: number, connections: number, base64: string, reads: boolean): Promise<number> => {
    const bytes = Buffer.from(base64, 'base64');
    const open = (): Promise<boolean> =>
      new Promise((resolve) => {
        const socket = connect({ host: address, port });
        pouring.push(() => socket.destroy());
        const write = (): void => {
          let isTaken = true;
          while (isTaken && socket.writable) {
            isTaken = socket.write(bytes);
            poured += bytes.byteLength;
          }
        };
        if (reads) socket.resume();
        socket.on('drain', write).on('error', () => resolve(false));
        socket.once('connect', () => {
          write();
          resolve(true);
        });
      });
    return (await Promise.all(Array.from({ length: connections }, open))).filter(Boolean).length;
  },
  /** The bytes that connections of `pour` have taken. */
  poured: (): Promise<number> => Promise.resolve(poured),
  /** Sends datagrams as fast as the kernel takes them, until `rest`. */
  flood: (addresses: readonly string[], port: number, base64: string): Promise<void> => {
    const bytes = Buffer.from(base64, 'base64');
    const sockets = addresses.map((address) => createSocket(address.includes(':') ? 'udp6' : 'udp4'));
    for (const socket of sockets) socket.on('error', () => undefined);
    const timer = setInterval(() => {
      for (const [at, socket] of sockets.entries())
        for (let sent = 0; sent < datagramsAtOnce; sent++) socket.send(bytes, port, addresses[at], () => undefined);
    });
    pouring.push(() => {
      clearInterval(timer);
      for (const socket of sockets) socket.close();
    });
    return Promise.resolve();
  },
  /** Ends all that `pour` and `flood` do. */
  rest: (): Promise<void> => {
    for (const end of pouring.splice(0)) end();
    return Promise.resolve();
  },
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
