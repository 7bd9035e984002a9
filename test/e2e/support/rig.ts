/**
 * All of Longshore for one test file: its own NATS, Redis and programs, with the engine and the
 * registry that the test run shares.
 */
import { join } from 'node:path';
import type { ServingName } from '../../../dev/stack/programs.ts';
import { tenantRange } from '../../../dev/stack/tenant-range.ts';
import type { Nats } from '../../../dev/servers/nats.ts';
import { startRedis, type Redis } from '../../../dev/servers/redis.ts';
import { namespacesOf, startTenantNetwork, type TenantNetwork } from '../../../dev/servers/tenant-network.ts';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { demoImage } from '../../../dev/servers/registry.ts';
import type { EngineView } from '../../host-agent/support/engine.ts';
import { temporaryFolder } from '../../support/folder.ts';
import type { Lifetime } from '../../support/runner/lifetime.ts';
import { sharedEngine, sharedRegistry } from '../../support/servers.ts';
import { clientFor, type Client, type Issuer } from './client.ts';
import { hostKey, prepareHosts } from './hosts.ts';
import { startControlPlane, type Running } from './programs.ts';

export interface Rig {
  readonly baseUrl: string;
  readonly dockerHost: string;
  readonly engine: EngineView;
  readonly nats: Nats;
  readonly redis: Redis;
  readonly actors: Running;
  readonly gateway: Running;
  readonly agent: Running;
  /** With `hasNetwork`. */
  readonly network: TenantNetwork | undefined;
  agentFolder(key: string): string;
  readonly metricsUrls: Readonly<Record<ServingName, string>>;
  readonly image: { readonly registry: string; readonly repository: string; readonly tag: string };
  readonly mint: Issuer['mint'];
  /** Starts another host, whose agent uses the same engine. */
  addHost(key: string, agent?: Record<string, string>): Promise<Running>;
  /** Starts a tenant network for another host. */
  addNetwork(): Promise<TenantNetwork>;
  client(tenant: string, scope?: string): Promise<Client>;
}

export interface RigOptions {
  readonly gateway?: Record<string, string>;
  readonly actors?: Record<string, string>;
  readonly agent?: Record<string, string>;
  /** True to give the host a tenant network, which needs Linux, root and the tool nft. */
  readonly hasNetwork?: boolean;
  /** Settings of the programs of that network. */
  readonly net?: Readonly<Record<string, string>>;
}

export async function startRig(t: Lifetime, options: RigOptions = {}): Promise<Rig> {
  const folder = temporaryFolder(t, 'longshore-e2e-');
  const dockerHost = await sharedEngine(t);
  const registry = await sharedRegistry(t);
  const redis = await startRedis({ folder: join(folder, 'redis') });
  t.teardown(() => redis.stop());
  const controlPlane = await startControlPlane(t, folder, {
    actors: {
      HOST_UNKNOWN: '3s',
      ...(options.hasNetwork === true ? { TENANT_IPV4: tenantRange(folder) } : {}),
      ...options.actors,
    },
    gateway: { ...redis.settings, ...options.gateway },
  });
  const { nats, access, issuer, actors, gateway, baseUrl, metricsUrls } = controlPlane;
  const network = options.hasNetwork === true ? await networkFor(t, folder, dockerHost, options.net) : undefined;
  const settings = { ...(network === undefined ? {} : { NET_SOCKET: network.socket }), ...options.agent };
  const hosts = await prepareHosts(t, folder, { baseUrl, issuer, nats: access, dockerHost, settings });
  const agent = await hosts.startAgent(hostKey);

  return {
    baseUrl,
    dockerHost,
    engine: hosts.engine,
    nats,
    redis,
    actors,
    gateway,
    agent: agent.program,
    network,
    agentFolder: hosts.agentFolder,
    addNetwork: () => networkFor(t, join(folder, 'second'), dockerHost),
    addHost: async (key, more) => (await hosts.startAgent(key, more)).program,
    metricsUrls: { ...metricsUrls, 'host-agent': agent.metricsUrl },
    image: { registry, ...demoImage },
    mint: issuer.mint,
    client: async (tenant, scope) => clientFor(baseUrl, issuer, tenant, scope),
  };
}

async function networkFor(
  t: Lifetime,
  folder: string,
  dockerHost: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<TenantNetwork> {
  const network = await startTenantNetwork({
    folder: join(folder, 'network'),
    namespaces: namespacesOf(dockerHost),
    tools: {
      ip: await toolHere('ip'),
      nft: await toolHere('nft'),
      wg: await toolHere('wg'),
      'wireguard-go': await toolHere('wireguard-go'),
    },
    path: process.env['PATH'] ?? '',
    settings: { NET_INTERVAL: '1s', ...settings },
  });
  t.teardown(network.stop);
  return network;
}
