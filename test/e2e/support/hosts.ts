/** Hosts with the real agent, all on one engine. */
import { join } from 'node:path';
import type { Test } from 'tap';
import { createApi } from '../../../dev/api.ts';
import { freePort } from '../../../dev/process/process.ts';
import { readClusterEntry } from '../../../lib/nats/cluster-record.ts';
import { isRestoring } from '../../../schemas/records/cluster.ts';
import { viewEngine } from '../../host-agent/support/engine.ts';
import type { Issuer } from './client.ts';
import { caOf, connectTo, startRunning, thisRelease, urlOf, type NatsAccess, type Started } from './programs.ts';

export const hostKey = 'h1';

/** Shorter waits, so that an agent is quick enough for a test. */
const quickAgent = {
  // The run's own registry, and those that tests simulate on loopback.
  REGISTRIES_ALLOWED: 'docker.io,127.0.0.1:*',
  // Every agent would run a probe container beside the test's.
  CONTAINER_FIREWALL: 'off',
  BEAT_INTERVAL_MS: '300',
  SYNC_INTERVAL_MS: '2000',
  STOP_GRACE_MS: '3000',
  RESTART_BACKOFF_MIN_MS: '200',
  RESTART_BACKOFF_MAX_MS: '2000',
  RETRY_MIN_MS: '50',
  RETRY_MAX_MS: '500',
};

export interface HostsOptions {
  readonly baseUrl: string;
  readonly issuer: Issuer;
  readonly nats: NatsAccess;
  readonly dockerHost: string;
  readonly settings: Record<string, string>;
  readonly compiled?: string;
}

async function clusterOf(nats: NatsAccess): Promise<string> {
  const nc = await connectTo(nats);
  try {
    const { entry } = await readClusterEntry(nc);
    if (entry === undefined || isRestoring(entry)) throw new Error('no cluster record');
    return entry.id;
  } finally {
    await nc.close();
  }
}

/** Hosts whose agents use the run's engine. */
export async function prepareHosts(t: Test, folder: string, options: HostsOptions) {
  const { baseUrl, issuer, nats, dockerHost, compiled = thisRelease } = options;
  // Containers outlive their agent by design, but not the test. Registered before the agents, so
  // torn down after them.
  const engine = viewEngine(t, dockerHost, await clusterOf(nats));
  const agentFolder = (key: string): string => join(folder, `agent-${key}`);
  const operatorToken = await issuer.mint({ tenant: 'ops', subject: 'op', scope: 'operator', lifetimeS: 3600 });
  const api = createApi(baseUrl);
  const startAgent = async (key: string): Promise<Started> => {
    const port = await freePort();
    const program = await startRunning(
      t,
      'host-agent',
      {
        LONGSHORE_URL: baseUrl,
        LONGSHORE_JOIN_TOKEN: await api.joinToken(operatorToken, { key, region: 'default' }),
        STATE_DIR: agentFolder(key),
        DOCKER_HOST: dockerHost,
        METRICS_PORT: String(port),
        CAPACITY_CPU_MILLIS: '1000000',
        CAPACITY_MEM_BYTES: String(1024 ** 4),
        ...caOf(nats),
        ...quickAgent,
        ...options.settings,
      },
      urlOf(port, '/readyz'),
      { folder, compiled },
    );
    await api.hostIsUp(operatorToken, key, AbortSignal.timeout(120_000));
    return { program, metricsUrl: urlOf(port, '/metrics') };
  };
  return { engine, agentFolder, startAgent };
}

/** Names for as many containers: c0, c1, … */
export const named = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);
