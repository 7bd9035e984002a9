/** Hosts that run the real agent, all on one engine. */
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { createApi } from '../../../dev/api.ts';
import { freePort } from '../../../dev/process/process.ts';
import { readClusterEntry } from '../../../lib/nats/cluster-record.ts';
import { isRestoring } from '../../../schemas/records/cluster.ts';
import { viewEngine } from '../../host-agent/support/engine.ts';
import type { Lifetime } from '../../support/runner/lifetime.ts';
import type { Issuer } from './client.ts';
import { caOf, connectTo, startRunning, thisRelease, urlOf, type NatsAccess, type Started } from './programs.ts';

export const hostKey = 'h1';

/** Settings with short waits, so that tests are quick. */
export const quickAgent = {
  // The registry of this test run, and those that tests simulate on loopback.
  REGISTRIES_ALLOWED: 'docker.io,127.0.0.1:*',
  // With the firewall on, each agent would run a probe container beside the test's.
  CONTAINER_FIREWALL: 'off',
  // Each sandbox that waits costs the engine as much as a container.
  LONGSHORE_SANDBOX_POOL: '1',
  HEARTBEAT_INTERVAL: '300ms',
  SYNC_INTERVAL: '2s',
  STOP_GRACE: '3s',
  RESTART_BACKOFF_MIN: '200ms',
  RESTART_BACKOFF_MAX: '2s',
  RETRY_MIN: '50ms',
  RETRY_MAX: '500ms',
};

export interface HostsOptions {
  readonly baseUrl: string;
  readonly issuer: Issuer;
  readonly nats: NatsAccess;
  readonly dockerHost: string;
  readonly settings: Record<string, string>;
  readonly compiled?: string;
}

/** The id of the cluster that these servers hold. */
export async function clusterOf(nats: NatsAccess): Promise<string> {
  const nc = await connectTo(nats);
  try {
    const { entry } = await readClusterEntry(nc);
    if (entry === undefined || isRestoring(entry)) throw new Error('no cluster record');
    return entry.id;
  } finally {
    await nc.close();
  }
}

/** Returns a function that starts agents of new hosts on the engine of this test run. */
export async function prepareHosts(t: Lifetime, folder: string, options: HostsOptions) {
  const { baseUrl, issuer, nats, dockerHost, compiled = thisRelease } = options;
  // Containers outlive their agent but must not outlive the test. Teardowns run in reverse order,
  // so this one, registered first, removes them after the agents have stopped.
  const engine = viewEngine(t, dockerHost, await clusterOf(nats));
  const agentFolder = (key: string): string => join(folder, `agent-${key}`);
  const operatorToken = await issuer.mint({ tenant: 'ops', subject: 'op', scope: 'operator', lifetimeS: 3600 });
  const api = createApi(baseUrl);
  const secretFiles = join('/dev/shm', `longshore-test-${randomUUID()}`);
  t.teardown(() => rmSync(secretFiles, { recursive: true, force: true }));
  const startAgent = async (key: string, more: Record<string, string> = {}): Promise<Started> => {
    const port = await freePort();
    const program = await startRunning(
      t,
      'host-agent',
      {
        LONGSHORE_URL: baseUrl,
        LONGSHORE_JOIN_TOKEN: await api.joinToken(operatorToken, { key, region: 'default' }),
        STATE_DIR: agentFolder(key),
        DOCKER_HOST: dockerHost,
        SECRET_FILES_DIR: secretFiles,
        METRICS_PORT: String(port),
        CAPACITY_CPU_MILLIS: '1000000',
        CAPACITY_MEM_BYTES: String(1024 ** 4),
        ...caOf(nats),
        ...quickAgent,
        ...options.settings,
        ...more,
      },
      urlOf(port, '/readyz'),
      { folder, compiled },
    );
    await api.hostIsUp(operatorToken, key, AbortSignal.timeout(120_000));
    return { program, metricsUrl: urlOf(port, '/metrics') };
  };
  return { engine, agentFolder, startAgent };
}

/** `count` names of containers: c0, c1, … */
export const named = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);
