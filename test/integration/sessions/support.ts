/** Both ends of sessions on a real nats-server, each with its credentials of production. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createUser } from '@nats-io/nkeys';
import { connect, jwtAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import type { Test } from 'tap';
import { startNats, type Nats } from '../../../dev/servers/nats.ts';
import { Sessions } from '../../../gateway/sessions/sessions.ts';
import { Permits } from '../../../lib/permits.ts';
import { createSessions, type SessionKind } from '../../../host-agent/sessions/sessions.ts';
import { connectNats } from '../../../lib/nats/connection.ts';
import { createProver } from '../../../lib/nats/host-proof.ts';
import { keepInboxPrefix } from '../../../lib/nats/inbox.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import type { Tunnel, TunnelPort } from '../../../lib/tunnel/tunnel.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { SessionAbout, SessionEnd } from '../../../schemas/wire/session.ts';
import type { Sender } from '../../../schemas/wire/subjects.ts';
import { containerId, quietLog, tenantId } from '../../actors/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { mintHostUserJwt } from '../../support/host-user.ts';

export async function startServer(t: Test): Promise<Nats> {
  const nats = await startNats({ dir: join(temporaryFolder(t), 'nats') });
  t.teardown(() => nats.stop());
  return nats;
}

export interface GatewayEnd {
  readonly nc: NatsConnection;
  readonly sessions: Sessions;
}

export async function gatewayOn(t: Test, nats: Nats): Promise<GatewayEnd> {
  const nc = await connectNats({ servers: [nats.url], name: 'gateway', credsFile: nats.gatewayCredsFile }, quietLog);
  t.teardown(() => nc.close());
  const sessions = new Sessions({ clock: systemClock, log: quietLog, stillGood: () => true });
  sessions.serve(nc);
  await nc.flush();
  return { nc, sessions };
}

export interface HostEnd {
  readonly nc: NatsConnection;
  readonly agent: Sender;
  readonly prove: ReturnType<typeof createProver>;
}

/** The connection of an agent, with credentials of this release. */
export async function hostOn(t: Test, nats: Nats, host: string, jwtOf = mintHostUserJwt): Promise<HostEnd> {
  const user = createUser();
  const key = user.getPublicKey();
  const jwt = await jwtOf({
    hostKey: host,
    publicKey: key,
    hostsAccount: nats.hostsAccount,
    hostsSigningSeed: readFileSync(nats.hostsSigningSeedFile, 'utf8'),
  });
  const inboxPrefix = `_INBOX_${key}`;
  const authenticator = jwtAuthenticator(jwt, user.getSeed());
  const nc = await connect({ servers: nats.url, authenticator, inboxPrefix, reconnectTimeWait: 50 });
  keepInboxPrefix(nc, inboxPrefix);
  t.teardown(() => nc.close());
  const agent: Sender = { host: host as HostKey, user: key };
  return { nc, agent, prove: createProver({ sender: agent, seed: user.getSeed(), jwt: () => jwt, nowMs: Date.now }) };
}

/** Arguments of a session of the kind under test, and the ends of the session. */
export interface Taken {
  readonly about: SessionAbout;
  readonly tunnel: Tunnel;
  readonly ends: SessionEnd[];
}

/** Sends back what it hears; refuses the port 9. */
export function echoKind(taken: Taken[] = []): SessionKind {
  return {
    name: 'echo',
    permits: new Permits({ inAll: limits.sessionsPerHost, perClient: limits.sessionsPerContainer }),
    logLevel: 'info',
    isOf: (about) => about.forward !== undefined,
    open: (_target, about, tunnel) => {
      if (about.forward?.port === 9) return Promise.resolve({ reason: 'refused', message: 'nobody listens' });
      const one: Taken = { about, tunnel, ends: [] };
      taken.push(one);
      const waiting: Uint8Array[] = [];
      const pump = (): void => {
        for (let first = waiting[0]; first !== undefined && tunnel.room() > 0; first = waiting[0]) {
          const part = first.subarray(0, tunnel.room());
          tunnel.data(1, part);
          tunnel.took(part.length);
          if (part.length === first.length) waiting.shift();
          else waiting[0] = first.subarray(part.length);
        }
      };
      const port: TunnelPort = {
        onData: (_channel, bytes) => {
          waiting.push(bytes);
          pump();
        },
        onControl: () => tunnel.tookControl(),
        onRoom: pump,
        onEnd: (end) => void one.ends.push(end),
      };
      return Promise.resolve(port);
    },
  };
}

/** The agent's side of sessions, on a connection. */
export function serveSessions({ nc, agent }: HostEnd, kinds: readonly SessionKind[]) {
  const reasons: string[] = [];
  const sessions = createSessions({
    kinds,
    targetOf: () => Promise.resolve({ dockerId: 'd', run: 'r', ip: undefined, addresses: [] }),
    request: async (subject, payload, timeout) => (await nc.request(subject, payload, { timeout })).data,
    clock: systemClock,
    metrics: { tunnelOpened: () => {}, tunnelEnded: (_kind, reason) => void reasons.push(reason) },
    log: quietLog,
  });
  sessions.serve(nc, agent);
  return Object.assign(sessions, { reasons });
}

export const aboutPort = (port: number, id = containerId()): SessionAbout => ({
  tenant: tenantId('acme'),
  id,
  placement: 1,
  forward: { port },
});

export const placeOf = ({ agent }: HostEnd) => ({ host: agent.host, agent: agent.user, placement: 1 });
