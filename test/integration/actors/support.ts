/** A real nats-server with a cluster on it, and asks sent as a gateway sends them. */
import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect, credsAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import { Registry } from 'prom-client';
import type { Test } from 'tap';
import { checkServer, joinCluster } from '../../../actors/cluster.ts';
import { createMetrics } from '../../../actors/metrics.ts';
import { createOwner, type Owner } from '../../../actors/owner.ts';
import { startNats, type Nats } from '../../../dev/servers/nats.ts';
import { programFile } from '../../../dev/stack/programs.ts';
import { sleep, within } from '../../../lib/time/backoff.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import type { Cluster } from '../../../schemas/records/cluster.ts';
import type { HostKey, Region } from '../../../schemas/ids.ts';
import { addressOf, type Ask } from '../../../schemas/wire/asks.ts';
import { decodeAnswers, encodeAsks, type Answer } from '../../../schemas/wire/codec.ts';
import { partitionOf, subjects } from '../../../schemas/wire/subjects.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { quietLog, agentKey, operation } from '../../actors/support.ts';

export const controlPlane = (nats: Nats): Promise<NatsConnection> =>
  connect({
    servers: nats.url,
    authenticator: credsAuthenticator(readFileSync(nats.credsFile)),
    maxReconnectAttempts: -1,
    reconnectTimeWait: 50,
    noAsyncTraces: true,
  });

/** Runs the program, for tests that kill it or read its log. */
export function spawnActors(
  nats: Nats,
  partitions: number,
  { env = {}, stdio }: { readonly env?: NodeJS.ProcessEnv; readonly stdio: StdioOptions },
): ChildProcess {
  return spawn(process.execPath, [programFile('actors')], {
    env: {
      NATS_URLS: nats.url,
      NATS_CREDS_FILE: nats.actorsCredsFile,
      LONGSHORE_PARTITIONS: String(partitions),
      HOSTS_ACCOUNT: nats.hostsAccount,
      HOSTS_SIGNING_SEED_FILE: nats.hostsSigningSeedFile,
      METRICS_PORT: '0',
      ...env,
    },
    stdio,
  });
}

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

/** An actors process that runs inside this one. */
export function ownerOn(
  { nats, cluster }: Ground,
  nc: NatsConnection,
  more: Partial<Parameters<typeof createOwner>[0]> = {},
): Owner {
  return createOwner({
    nc,
    cluster,
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
    observer: createMetrics(new Registry()).observer,
    newToken: randomUUID,
    ...more,
  });
}

type Loose<T> = T extends { rid: string } ? Omit<T, 'rid' | 'budgetMs'> : never;

/** A gateway that sends one ask at a time and waits for its answer. */
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

/** A host whose agent has enrolled. */
export async function enrolHost(ask: ReturnType<typeof createAsker>, host: HostKey): Promise<void> {
  const joinTokenHash = 'x';
  await ask({ type: 'host.create', host, region: 'default' as Region, joinTokenHash, op: operation() });
  for (let tries = 0; tries < 20; tries++) {
    const { code } = await ask({ type: 'host.enrol', host, joinTokenHash, publicKey: agentKey, op: operation() });
    if (code === 'created') return;
    // In the second in which a key was revoked, as with the key of a removed host, no credentials
    // are signed for it.
    if (code !== 'unavailable') throw new Error(`an enrolment: ${code}`);
    await sleep(200);
  }
  throw new Error('no enrolment');
}
