/** The counters of a nats-server, and connections to it. */
import { readFileSync } from 'node:fs';
import { connect, credsAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import type { Nats } from '../dev/servers/nats.ts';

const askMs = 10_000;
const hostsMax = 2_000;

const connectAs = (nats: Nats, credsFile: string): Promise<NatsConnection> =>
  connect({ servers: nats.url, authenticator: credsAuthenticator(readFileSync(credsFile)), timeout: askMs });

async function connected<T>(nats: Nats, credsFile: string, work: (nc: NatsConnection) => Promise<T>): Promise<T> {
  const nc = await connectAs(nats, credsFile);
  try {
    return await work(nc);
  } finally {
    await nc.close();
  }
}

export const asControlPlane = <T>(nats: Nats, work: (nc: NatsConnection) => Promise<T>): Promise<T> =>
  connected(nats, nats.credsFile, work);

/** Messages that the server has received from its clients and sent to them since its start. */
export const messagesNow = (nats: Nats): Promise<{ readonly taken: number; readonly given: number }> =>
  connected(nats, nats.sysCredsFile, async (nc) => {
    const answer = await nc.request('$SYS.REQ.SERVER.PING.STATSZ', '', { timeout: askMs });
    const { statsz } = answer.json<{ statsz: { received: { msgs: number }; sent: { msgs: number } } }>();
    return { taken: statsz.received.msgs, given: statsz.sent.msgs };
  });

/** Messages to and from the connections of hosts, since each began. */
export const hostMessagesNow = (nats: Nats): Promise<number> =>
  connected(nats, nats.sysCredsFile, async (nc) => {
    const wanted = JSON.stringify({ acc: nats.hostsAccount, limit: hostsMax });
    const answer = await nc.request('$SYS.REQ.SERVER.PING.CONNZ', wanted, { timeout: askMs });
    const { data } = answer.json<{ data: { connections: { in_msgs: number; out_msgs: number }[] } }>();
    return data.connections.reduce((sum, { in_msgs, out_msgs }) => sum + in_msgs + out_msgs, 0);
  });
