/** A gateway in this process, on a real nats-server. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, credsAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import { Registry } from 'prom-client';
import type { Test } from 'tap';
import { joinCluster } from '../../../actors/cluster.ts';
import { serveReads } from '../../../actors/endpoints/reads.ts';
import { startNats, type Nats } from '../../../dev/servers/nats.ts';
import type { EngineName } from '../../../gateway/http/engine/engine.ts';
import { startGateway, type Gateway } from '../../../gateway/gateway.ts';
import { issuersOf } from '../../../gateway/configuration/issuers.ts';
import { settings } from '../../../gateway/configuration/settings.ts';
import type { Polls } from '../../../gateway/streams/host.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { systemClock, type Clock } from '../../../lib/time/clock.ts';
import { readSettings } from '../../../lib/config.ts';
import type { Log } from '../../../lib/log.ts';
import { Answers } from '../../../lib/nats/answers.ts';
import { connectNats } from '../../../lib/nats/connection.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { createIssuer, type TestIssuer } from '../../gateway/tokens.ts';
import { quietLog } from '../../gateway/support.ts';
import { ownerOn } from '../actors/support.ts';

export const controlPlane = (nats: Nats): Promise<NatsConnection> =>
  connect({
    servers: nats.url,
    authenticator: credsAuthenticator(readFileSync(nats.credsFile)),
    maxReconnectAttempts: -1,
    reconnectTimeWait: 50,
    // On a busy machine.
    timeout: 120_000,
    noAsyncTraces: true,
  });

export interface Ground {
  readonly nats: Nats;
  readonly nc: NatsConnection;
  readonly issuer: TestIssuer;
  readonly partitions: number;
}

/** A server with an initialised cluster, on which no owner answers yet. */
export async function startGround(t: Test, partitions = 4): Promise<Ground> {
  const folder = temporaryFolder(t);
  const nats = await startNats({ dir: join(folder, 'nats') });
  t.teardown(() => nats.stop());
  const nc = await controlPlane(nats);
  t.teardown(() => nc.close());
  await joinCluster(nc, { partitions, replicas: 1, newId: randomUUID });
  serveReads(nc, quietLog);
  return { nats, nc, issuer: await createIssuer(join(folder, 'issuer')), partitions };
}

/** An actors process that owns everything, in this process. */
export async function startOwnerOn(t: Test, ground: Ground) {
  const cluster = await joinCluster(ground.nc, { partitions: ground.partitions, replicas: 1, newId: randomUUID });
  const nc = await controlPlane(ground.nats);
  t.teardown(() => nc.close());
  const owner = ownerOn({ ...ground, cluster }, nc);
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopping ??= owner.stop());
  // If a test fails before it stops its owner, the owner would keep the process alive.
  t.teardown(stop);
  await owner.start();
  return { stop };
}

export type Environment = Readonly<Record<string, string>>;

export const environmentOf = ({ nats, issuer }: Ground, more: Environment = {}): Environment => ({
  HTTP_PORT: '0',
  METRICS_PORT: '0',
  NATS_URLS: nats.url,
  NATS_CREDS_FILE: nats.gatewayCredsFile,
  HOSTS_ACCOUNT_FILE: nats.hostsAccountFile,
  AUTH_ISSUER: issuer.name,
  AUTH_AUDIENCE: issuer.audience,
  AUTH_JWKS_FILE: issuer.jwksFile,
  SHUTDOWN_DELAY: '0s',
  LOG_LEVEL: 'info',
  RATE_LIMIT_AUTH_FAILURES_PER_SECOND: '100000',
  RATE_LIMIT_AUTH_FAILURES_BURST: '1000000',
  ...more,
});

export type RunningGateway = Gateway & { readonly registry: Registry; readonly nc: NatsConnection };

/** Starts a gateway in this process; it is ready on return, unless the options say otherwise. */
export async function runGateway(
  t: Test,
  ground: Ground,
  options: {
    engine?: EngineName;
    env?: Environment;
    log?: Log;
    untilReady?: boolean;
    polls?: Polls;
    clock?: Clock;
  } = {},
): Promise<RunningGateway> {
  const env = environmentOf(ground, { HTTP_ENGINE: options.engine ?? 'uws', ...options.env });
  const configuration = readSettings(settings, env);
  const log = options.log ?? quietLog;
  const answers = new Answers(systemClock);
  const nats = connectNats(
    {
      servers: configuration.NATS_URLS,
      name: 'gateway',
      answers,
      credsFile: configuration.NATS_CREDS_FILE ?? '',
    },
    log,
  );
  const registry = new Registry();
  const gateway = await startGateway({
    configuration,
    issuers: issuersOf(configuration),
    nats,
    answers,
    registry,
    clock: options.clock ?? systemClock,
    log,
    version: '0.0.0',
    onOtherCluster: () => {},
    ...(options.polls === undefined ? {} : { polls: options.polls }),
  });
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopping ??= gateway.stop());
  t.teardown(async () => {
    await stop();
    await (await nats).close();
  });
  const nc = await nats;
  if (options.untilReady !== false) await untilReady(gateway.url);
  return { ...gateway, stop, registry, nc };
}

export async function untilReady(url: string, deadlineMs = 60_000): Promise<void> {
  const endMs = performance.now() + deadlineMs;
  for (;;) {
    const response = await fetch(`${url}/readyz`).catch(() => undefined);
    await response?.text();
    if (response?.status === 200) return;
    if (performance.now() > endMs) throw new Error(`not ready within ${deadlineMs} ms`);
    await sleep(20);
  }
}
