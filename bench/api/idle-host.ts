/**
 * A host with unlimited capacity that runs nothing. It enrols, says hello and sends heartbeats, so
 * that actors place containers on it and ring its doorbell. The section `fleet` measures the cost
 * of agents.
 */
import { createUser, type KeyPair } from '@nats-io/nkeys';
import { connect, jwtAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import { createApi } from '../../dev/api.ts';
import type { ContainerId, HostKey, TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { HelloAnswer } from '../../schemas/wire/host.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import { protocolFields } from '../../schemas/wire/version.ts';
import type { Ground } from './ground.ts';

const key = 'idle' as HostKey;
const none = { cpu_millis: 0, mem_bytes: 0, containers: 0 };
const capacity = { cpu_millis: 1e12, mem_bytes: 1e15, containers: 1e9 };
const deadlineMs = 10_000;

export interface IdleHost {
  /** Publishes an encoded block of log lines; resolves after JetStream has stored it. */
  publishLog(tenant: string, id: string, block: string): Promise<void>;
}

async function enrol(baseUrl: string, ground: Ground, user: KeyPair): Promise<NatsConnection> {
  const joinToken = await createApi(baseUrl).joinToken(ground.operator, { key, region: 'default' });
  const answer = await fetch(`${baseUrl}/api/v2/hosts/enrol`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ join_token: joinToken, public_key: user.getPublicKey() }),
    signal: AbortSignal.timeout(deadlineMs),
  });
  if (!answer.ok) throw new Error(`enrolment of a host: ${answer.status} ${await answer.text()}`);
  const { data } = (await answer.json()) as { data: { jwt: string; natsUrls: string[] } };
  return connect({
    servers: data.natsUrls,
    authenticator: jwtAuthenticator(data.jwt, user.getSeed()),
    inboxPrefix: subjects.hostInbox({ user: user.getPublicKey() }),
    name: 'idle host',
  });
}

export async function startIdleHost(baseUrl: string, ground: Ground): Promise<IdleHost> {
  const user = createUser();
  const sender = { host: key, user: user.getPublicKey() };
  const nc = await enrol(baseUrl, ground, user);
  ground.scope.teardown(() => nc.close());
  const hello = JSON.stringify({ v: 1, ...protocolFields, agent_version: 'bench', capacity });
  const answer = (await nc.request(subjects.hostHello(sender), hello, { timeout: deadlineMs })).json<HelloAnswer>();
  if (!answer.ok) throw new Error(`hello of a host: ${answer.error}`);
  const quiet = { orphans_held: 0, volumes_left: 0, faults: [], room: {} };
  const said = { session: answer.session, used: none, engine: 'none', ...quiet };
  const beat = JSON.stringify({ v: 1, ...protocolFields, ...said });
  const beating = setInterval(() => nc.publish(subjects.hostBeat(sender), beat), limits.beatIntervalMs);
  ground.scope.teardown(() => clearInterval(beating));
  nc.publish(subjects.hostBeat(sender), beat);
  await createApi(baseUrl).hostIsUp(ground.operator, key, ground.bench.signal);
  return {
    publishLog: async (tenant, id, block) => {
      const subject = subjects.hostLog(key, tenant as TenantId, id as ContainerId);
      const ack = (await nc.request(subject, block, { timeout: deadlineMs })).json<{ seq?: number }>();
      if (ack.seq === undefined) throw new Error(`a block of log lines was refused: ${JSON.stringify(ack)}`);
    },
  };
}
