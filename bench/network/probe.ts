/** A process in a network namespace: it listens, connects, sends and asks by orders. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { encode, RECURSION_DESIRED } from 'dns-packet';
import { sleep } from '../../lib/time/backoff.ts';
import { obey } from '../../test/support/sandbox.ts';

const chunk = Buffer.alloc(128 * 1024);
const dnsPort = 53;
const tickMs = 5;
/** Time for the last answers. */
const lastMs = 500;

const connected = async (address: string, port: number): Promise<Socket> => {
  const socket = connect({ host: address, port, noDelay: true });
  await once(socket, 'connect');
  return socket;
};

const orders = {
  /** Takes what comes; at its end it says how many bytes it was. */
  listen: (port: number): Promise<void> =>
    new Promise((resolve) => {
      const server = createServer({ allowHalfOpen: true }, (socket) => {
        let bytes = 0;
        socket.on('error', () => socket.destroy());
        socket.on('data', (part) => (bytes += part.length)).on('end', () => socket.end(String(bytes)));
      });
      server.listen(port, '::', resolve);
    }),
  /** One connection after another. @returns the milliseconds of each */
  connects: async (address: string, port: number, count: number): Promise<number[]> => {
    const all: number[] = [];
    while (all.length < count) {
      const startMs = performance.now();
      const socket = await connected(address, port);
      all.push(performance.now() - startMs);
      socket.destroy();
    }
    return all;
  },
  /** Sends as much as goes for so long. */
  stream: async (
    address: string,
    port: number,
    forMs: number,
  ): Promise<{ readonly bytes: number; readonly ms: number }> => {
    const socket = await connected(address, port);
    const startMs = performance.now();
    while (performance.now() - startMs < forMs) if (!socket.write(chunk)) await once(socket, 'drain');
    socket.end();
    let said = '';
    for await (const part of socket) said += String(part);
    return { bytes: Number(said), ms: performance.now() - startMs };
  },
  /** Asks for random names. @returns the milliseconds of each answer; one that is lost has none */
  queries: async (resolver: string, names: readonly string[], perSecond: number, forMs: number): Promise<number[]> => {
    const socket = createSocket('udp4');
    const sentMs = new Map<number, number>();
    const all: number[] = [];
    socket.on('message', (answer) => {
      const id = answer.readUInt16BE(0);
      const atMs = sentMs.get(id);
      if (atMs !== undefined) all.push(performance.now() - atMs);
      sentMs.delete(id);
    });
    socket.connect(dnsPort, resolver);
    await once(socket, 'connect');
    const startMs = performance.now();
    for (let sent = 0, id = 0; performance.now() - startMs < forMs;) {
      const due = ((performance.now() - startMs) / 1000) * perSecond;
      for (; sent < due; sent++) {
        id = (id + 1) % 65_536;
        const name = names[Math.floor(Math.random() * names.length)] ?? '';
        const question = encode({ type: 'query', id, flags: RECURSION_DESIRED, questions: [{ type: 'A', name }] });
        sentMs.set(id, performance.now());
        socket.send(question);
      }
      await sleep(tickMs);
    }
    await sleep(lastMs);
    socket.close();
    return all;
  },
};

export type Orders = typeof orders;

obey(orders);
