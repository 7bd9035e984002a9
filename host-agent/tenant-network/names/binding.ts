/**
 * Makes the sockets of a resolver, in the network namespace that this process was started in, and
 * gives them to the process that started it.
 */
import { createSocket, type Socket as DatagramSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, isIPv6, type Server } from 'node:net';

const port = 53;

type Handle = DatagramSocket | Server;
/** Sends a message with a socket to another process, as `child.send` does. */
export type Send = (message: object, handle: Handle, sent: (error: Error | null) => void) => unknown;

/** @param addresses the addresses of the resolver, which the router namespace has */
export async function bind(addresses: readonly string[], send: Send): Promise<void> {
  for (const address of addresses) {
    const datagrams = createSocket({ type: isIPv6(address) ? 'udp6' : 'udp4', ipv6Only: isIPv6(address) });
    datagrams.bind({ address, port, exclusive: true });
    await once(datagrams, 'listening');
    await give(send, datagrams);
    const connections = createServer();
    connections.listen({ host: address, port, exclusive: true, ipv6Only: isIPv6(address) });
    await once(connections, 'listening');
    await give(send, connections);
  }
}

/** Hands the socket over and closes it here: an open one would go on taking queries. */
export const give = (send: Send, socket: Handle): Promise<void> =>
  new Promise((resolve, reject) => {
    send({}, socket, (error) => {
      socket.close();
      if (error === null) resolve();
      else reject(error);
    });
  });
