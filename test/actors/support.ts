/** A real nats-server with a cluster on it, and asks sent as a gateway sends them. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect, credsAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import { Registry } from 'prom-client';
import type { Test } from 'tap';
import { checkServer, joinCluster } from '../../actors/cluster.ts';
import { createObserver } from '../../actors/metrics.ts';
import { createOwner, type Owner } from '../../actors/owner.ts';
import { startNats, type Nats } from '../../deploy/nats.ts';
import { within } from '../../lib/backoff.ts';
import { systemClock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Cluster } from '../../schemas/cluster.ts';
import type { ContainerSpec } from '../../schemas/container.ts';
import type { ContainerId, HostKey, OperationId, TenantId } from '../../schemas/ids.ts';
import { addressOf, decodeAnswers, encodeAsks, type Answer, type Ask } from '../../schemas/messages.ts';
import { partitionOf, subjects } from '../../schemas/subjects.ts';
import { temporaryFolder } from '../support/folder.ts';

export const quietLog: Log = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => quietLog,
};

export const controlPlane = (nats: Nats): Promise<NatsConnection> =>
  connect({
    servers: nats.url,
    authenticator: credsAuthenticator(readFileSync(nats.credsFile)),
    maxReconnectAttempts: -1,
    reconnectTimeWait: 50,
    noAsyncTraces: true,
  });

export interface Ground {
  readonly nats: Nats;
  readonly nc: NatsConnection;
  readonly cluster: Cluster;
}

export async function startCluster(t: Test, partitions: number): Promise<Ground> {
  const nats = await startNats({ dir: temporaryFolder(t) });
  t.teardown(() => nats.stop());
  const nc = await controlPlane(nats);
  t.teardown(() => nc.close());
  await checkServer(nc);
  const cluster = await joinCluster(nc, { partitions, replicas: 1, newId: randomUUID });
  return { nats, nc, cluster };
}

/** An actors process, but for the process. */
export function ownerOn(
  { nats, cluster }: Ground,
  nc: NatsConnection,
  more: Partial<Parameters<typeof createOwner>[0]> = {},
): Owner {
  return createOwner({
    nc,
    cluster: cluster.id,
    partitions: cluster.partitions,
    name: randomUUID(),
    hostsAccount: {
      publicKey: nats.hostsAccount,
      signingSeed: readFileSync(nats.hostsSigningSeedFile, 'utf8').trim(),
    },
    hostsNatsUrls: [nats.url],
    hostCredentialsTtlMs: 3_600_000,
    hostUnknownMs: 60_000,
    hostLostMs: 300_000,
    clock: systemClock,
    log: quietLog,
    observer: createObserver(new Registry()),
    newToken: randomUUID,
    onLost: () => {},
    ...more,
  });
}

type Loose<T> = T extends { rid: string } ? Omit<T, 'rid' | 'budgetMs'> : never;

/** A gateway with one request at a time: waits for the one answer to the one ask. */
export function createAsker(nc: NatsConnection, partitions: number) {
  return async (loose: Loose<Ask>): Promise<Omit<Answer, 'index'> & { readonly json: unknown }> => {
    const ask = { rid: randomUUID(), budgetMs: 5000, ...loose } as Ask;
    const address = addressOf(ask);
    const partition = typeof address === 'number' ? address : partitionOf(address, partitions);
    const message = await within(
      nc.request(subjects.partition(partition), encodeAsks([JSON.stringify(ask)]), { timeout: 5000 }),
      6000,
      ask.type,
    );
    const [answer] = decodeAnswers(message.string());
    if (answer === undefined) throw new Error('no answer');
    return { ...answer, json: answer.body === '' ? undefined : JSON.parse(answer.body) };
  };
}

export const operation = (): OperationId => randomUUID() as OperationId;
export const tenantId = (text: string): TenantId => text as TenantId;
export const hostKey = (text: string): HostKey => text as HostKey;
export const containerId = (): ContainerId => randomUUID() as ContainerId;

export const specOf = (name: string, more: Partial<ContainerSpec> = {}): ContainerSpec => ({
  name,
  host_key: null,
  registry: 'registry.test',
  repository: 'longshore/demo',
  tag: '1',
  digest: null,
  pull_policy: 'if_not_present',
  ports: [],
  env: {},
  cpu_limit: '0.1',
  mem_limit: '16m',
  ...more,
});
