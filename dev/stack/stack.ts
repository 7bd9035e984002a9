/**
 * Runs all of Longshore on one machine. Each server and program starts as soon as what it needs is
 * ready, and is restarted when it ends by itself. Used by `npm start` and by end-to-end tests, each
 * in a folder of its own.
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { firewallTable } from '../../host-agent/network/firewall-rules.ts';
import { decodeIdentity } from '../../host-agent/link/identity/identity.ts';
import { createApi, type Api } from '../api.ts';
import { stopContainers } from '../servers/engine-api.ts';
import { signInLinks } from '../demo/sign-in.ts';
import { findEngine, requirePrivateEngine, startPrivateEngine, type Engine } from '../servers/engine.ts';
import { startNats, type Nats } from '../servers/nats.ts';
import { removeFirewall } from '../servers/firewall.ts';
import { keptPorts, type Ports } from './ports.ts';
import { startRestartable, type Restartable } from '../process/process.ts';
import { Parts } from './parts.ts';
import { startProgram, type Program, type ProgramName } from './programs.ts';
import { tenantRange } from './tenant-range.ts';
import { writePrivateFile } from '../../lib/process/private-file.ts';
import { namespacesOf, startTenantNetwork, type TenantNetwork } from '../servers/tenant-network.ts';
import { startRedis, type Redis } from '../servers/redis.ts';
import { demoImage, pushDemoImage, startRegistry, type Registry } from '../servers/registry.ts';
import { say } from '../steps.ts';
import {
  devAudience,
  devIssuer,
  mintDevTokens,
  prepareTokenIssuer,
  type DevTokens,
  type TokenIssuer,
} from '../tokens.ts';
import { readJsonFile } from '../json-file.ts';
import { findTool, ToolMissing, type Tool } from '../fetch/tools.ts';
import type { ToolName } from '../fetch/tool-table.ts';
import { pathWith } from '../fetch/wrappers.ts';
import { type Owner, ownerLabels } from '../../host-agent/docker/ownership.ts';

export const demoNetwork = 'demo';
export const localHost = { key: 'local', region: 'default' } as const;

export interface StackOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly stateFolder: string;
  readonly cacheFolder: string;
  /** Replaces settings of the host-agent. */
  readonly agentSettings?: Readonly<Record<string, string>>;
  /** Aborting ends the start and stops what has been started. */
  readonly signal: AbortSignal;
}

/** The tools of a VPN server and of a device. */
export type VpnTools = Readonly<Record<'ip' | 'wg' | 'wireguard-go', Tool>>;

export interface Stack {
  readonly api: Api;
  readonly tokens: DevTokens;
  readonly engine: Engine;
  readonly nats: Nats;
  readonly image: { readonly registry: string; readonly repository: string; readonly tag: string };
  readonly metricsUrls: readonly string[];
  /** True if containers of a tenant reach each other. */
  readonly hasNetwork: boolean;
  /** UDP port of the VPN server. */
  readonly vpnPort: number;
  /** `undefined` if no VPN is served here. */
  readonly vpnTools: VpnTools | undefined;
  stop(): Promise<void>;
}

/** Paths in the state folder: what each part keeps, and the logs. */
const layOut = (stateFolder: string) => ({
  logs: join(stateFolder, 'logs'),
  ports: join(stateFolder, 'ports.json'),
  engine: join(stateFolder, 'engine'),
  nats: join(stateFolder, 'nats'),
  redis: join(stateFolder, 'redis'),
  registry: join(stateFolder, 'registry'),
  tokens: join(stateFolder, 'tokens'),
  vpn: join(stateFolder, 'vpn'),
  agent: join(stateFolder, 'agent'),
  network: join(stateFolder, 'network'),
});

export async function startStack(options: StackOptions): Promise<Stack> {
  const parts = new Parts(options.signal);
  try {
    const started = await startParts(options, parts);
    return { ...started, stop: () => parts.stop() };
  } catch (error) {
    await parts.stop();
    throw error;
  }
}

async function startParts(options: StackOptions, parts: Parts): Promise<Omit<Stack, 'stop'>> {
  const found = await findEngine(options.env);
  if (found === undefined) requirePrivateEngine();
  const folders = layOut(options.stateFolder);
  const ports = await keptPorts(folders.ports);
  const issuer = await prepareTokenIssuer(folders.tokens);
  const tokens = await mintDevTokens(issuer);
  const ground: Ground = { ...options, folders, ports, parts };
  const api = createApi(`http://127.0.0.1:${ports.api}`);

  // The engine starts first: its packages are the largest, and the agent waits for it.
  const host = startEngine(ground, found);
  const registry = startImages(ground);
  const redis = startCache(ground);
  const nats = startMessages(ground);
  const actors = nats.then((made) => startActors(ground, made));
  const gateway = parts.all([nats, redis]).then(([made, cache]) => startGateway(ground, made, cache, issuer));
  // The gateway is ready only while owners of partitions answer it, so once it is ready the actors
  // are too.
  const joinToken = gateway.then(() => api.joinToken(tokens.operator.token, localHost));
  const network = host.then((made) => startNetwork(ground, made));
  const agent = parts
    .all([host, registry, nats, joinToken, network])
    .then(([host, registry, nats, joinToken, network]) =>
      startAgent(ground, { host, registry, nats, joinToken, network }),
    )
    .then(() =>
      parts.take('host in the fleet', () => api.hostIsUp(tokens.operator.token, localHost.key, options.signal)),
    );
  const [{ engine }, { address }, messages, tenantNetwork] = await parts.all([
    host,
    registry,
    nats,
    network,
    actors,
    gateway,
    agent,
  ]);

  const image = { registry: address, ...demoImage };
  return {
    api,
    tokens,
    engine,
    nats: messages,
    image,
    metricsUrls: metricsUrls(ports),
    hasNetwork: tenantNetwork !== undefined,
    vpnPort: ports.vpn,
    vpnTools: tenantNetwork?.vpnTools,
  };
}

/** Needs of the start of every part. */
interface Ground extends StackOptions {
  readonly folders: ReturnType<typeof layOut>;
  readonly ports: Ports;
  readonly parts: Parts;
}

const toolOf = ({ env, cacheFolder, parts }: Ground, name: ToolName): Promise<Tool> =>
  parts.take(
    `find ${name}`,
    () => findTool(name, { env, cacheFolder, report: (what) => say(`· ${what} …`) }),
    ({ version, origin }) => `${version} (${origin})`,
  );

const logFileOf = ({ folders }: Ground, program: ProgramName): string => join(folders.logs, `${program}.log`);

const startOwn = ({ env, parts }: Ground, program: Program): Promise<Restartable> =>
  parts.start(
    program.name,
    () => startRestartable((called) => startProgram(program, env, called)),
    (made) => made,
  );

interface Host {
  readonly engine: Engine;
  /** Undefined if containers are not kept from reaching this machine. */
  readonly nft: Tool | undefined;
}

/** Uses the machine's engine if one answers, otherwise starts a private one. */
async function startEngine(ground: Ground, found: Engine | undefined): Promise<Host> {
  const { folders, parts } = ground;
  if (found !== undefined) {
    // Neither the agent nor the engine stops the containers: an agent leaves them running when it
    // stops, and the machine's engine keeps running.
    parts.stopLater('containers', () => stopOwnContainers(found, folders.agent));
    return { engine: found, nft: await findFirewall(ground) };
  }
  const dockerd = await toolOf(ground, 'dockerd');
  const engine = await parts.start(
    'Docker engine (private)',
    () => startPrivateEngine({ dir: folders.engine, tool: dockerd, firewall: true, throwaway: false }),
    (made) => ({ server: made.server, stop: made.stop, restart: made.start }),
    ({ version }) => version,
  );
  return { engine, nft: await findFirewall(ground) };
}

async function startImages(ground: Ground): Promise<Registry> {
  const { folders, parts, ports } = ground;
  const tool = await toolOf(ground, 'docker-registry');
  const registry = await parts.start(
    'registry',
    () => startRegistry({ tool, folder: folders.registry, port: ports.registry }),
    (made) => made,
    ({ address }) => address,
  );
  await toolOf(ground, 'busybox');
  await parts.take(`image ${demoImage.repository}:${demoImage.tag}`, () => pushDemoImage(registry.address));
  return registry;
}

async function startCache(ground: Ground): Promise<Redis> {
  const { folders, parts, ports } = ground;
  const tool = await toolOf(ground, 'redis-server');
  return parts.start(
    'Redis',
    () => startRedis({ tool, folder: folders.redis, port: ports.redis }),
    (made) => made,
  );
}

async function startMessages(ground: Ground): Promise<Nats> {
  const { folders, parts, ports } = ground;
  const tool = await toolOf(ground, 'nats-server');
  return parts.start(
    'NATS with JetStream',
    () => startNats({ tool, dir: folders.nats, port: ports.nats }),
    (made) => made,
    ({ url }) => url,
  );
}

const startActors = (ground: Ground, nats: Nats): Promise<Restartable> =>
  startOwn(ground, {
    name: 'actors',
    settings: {
      NATS_URLS: nats.url,
      NATS_CREDS_FILE: nats.actorsCredsFile,
      HOSTS_ACCOUNT: nats.hostsAccount,
      HOSTS_SIGNING_SEED_FILE: nats.hostsSigningSeedFile,
      NATS_SYSTEM_CREDS_FILE: nats.sysCredsFile,
      OPERATOR_SIGNING_SEED_FILE: nats.operatorSigningSeedFile,
      TENANT_IPV4: tenantRange(ground.stateFolder),
      METRICS_PORT: String(ground.ports.actorsMetrics),
    },
    readyUrl: readyUrlOf(ground.ports.actorsMetrics),
    logFile: logFileOf(ground, 'actors'),
  });

function startGateway(ground: Ground, nats: Nats, redis: Redis, issuer: TokenIssuer): Promise<Restartable> {
  const links = signInLinks(ground.stateFolder, ground.env);
  return startOwn(ground, {
    name: 'gateway',
    settings: {
      NATS_URLS: nats.url,
      NATS_CREDS_FILE: nats.gatewayCredsFile,
      HOSTS_ACCOUNT_FILE: nats.hostsAccountFile,
      HTTP_PORT: String(ground.ports.api),
      ...redis.settings,
      AUTH_ISSUER: devIssuer,
      AUTH_AUDIENCE: devAudience,
      AUTH_JWKS_FILE: issuer.jwksFile,
      VAULT_KEYS_FILE: keptVpnKeys(ground.folders.vpn),
      VPN_DEFAULT_NETWORK: demoNetwork,
      // Effectively no rate limit: one user's scripts and benchmarks share this machine with no
      // other tenant.
      RATE_LIMIT_TENANT_PER_SECOND: '1000000',
      RATE_LIMIT_TENANT_BURST: '1000000',
      ...(links === undefined ? {} : { SIGN_IN_LINK_FOLDER: links }),
      METRICS_PORT: String(ground.ports.gatewayMetrics),
    },
    readyUrl: readyUrlOf(ground.ports.api),
    logFile: logFileOf(ground, 'gateway'),
  });
}

interface AgentNeeds {
  readonly host: Host;
  readonly registry: Registry;
  readonly nats: Nats;
  readonly joinToken: string;
  readonly network: ServedNetwork | undefined;
}

function startAgent(ground: Ground, { host, registry, nats, joinToken, network }: AgentNeeds): Promise<Restartable> {
  const { engine, nft } = host;
  return startOwn(ground, {
    name: 'host-agent',
    settings: {
      LONGSHORE_URL: `http://127.0.0.1:${ground.ports.api}`,
      LONGSHORE_JOIN_TOKEN: joinToken,
      STATE_DIR: ground.folders.agent,
      // The agent refuses it where it is no tmpfs.
      SECRET_FILES_DIR: '/dev/shm/longshore',
      DOCKER_HOST: engine.host,
      NATS_URLS: nats.url,
      ...(nft === undefined
        ? { CONTAINER_FIREWALL: 'off' }
        : { PATH: pathWith(join(ground.stateFolder, 'bin'), { nft }, ground.env['PATH'] ?? '') }),
      ...(network === undefined ? {} : { NET_SOCKET: network.socket }),
      REGISTRIES_ALLOWED: `public,${registry.address}`,
      // A private engine holds only images of this stack.
      ...(engine.origin === 'private' ? { IMAGES_COLLECTED: 'all' } : {}),
      // An update shows its end soon.
      UPDATE_VERIFY: '3s',
      METRICS_PORT: String(ground.ports.agentMetrics),
      ...ground.agentSettings,
    },
    readyUrl: readyUrlOf(ground.ports.agentMetrics),
    logFile: logFileOf(ground, 'host-agent'),
  });
}

/**
 * Finds nft if the agent can keep containers from reaching this machine, which needs Linux and
 * root.
 */
async function findFirewall(ground: Ground): Promise<Tool | undefined> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    say('containers can reach this machine and its network; blocking that needs Linux and root');
    return undefined;
  }
  const { folders, parts } = ground;
  const nft = await findOptional(ground, 'nft', 'containers can reach this machine and its network');
  if (nft !== undefined) parts.stopLater('container firewall', () => removeOwnFirewall(nft, folders.agent));
  return nft;
}

/** @param lack consequence of the missing tool, for the user */
function findOptional({ env, cacheFolder, parts }: Ground, name: ToolName, lack: string): Promise<Tool | undefined> {
  const find = (): Promise<Tool | undefined> =>
    findTool(name, { env, cacheFolder, report: (what) => say(`· ${what} …`) }).catch((error: unknown) => {
      if (!(error instanceof ToolMissing)) throw error;
      say(`${lack}: ${error.message.split('\n')[0]}`);
      return undefined;
    });
  return parts.take(`find ${name}`, find, (tool) => (tool === undefined ? '' : `${tool.version} (${tool.origin})`));
}

interface ServedNetwork extends TenantNetwork {
  readonly vpnTools: VpnTools | undefined;
}

/** Undefined if the containers of a tenant cannot reach each other here; a line says why. */
async function startNetwork(ground: Ground, { engine, nft }: Host): Promise<ServedNetwork | undefined> {
  const lack = 'containers of a tenant cannot reach each other';
  if (nft === undefined) {
    say(`${lack}; that needs Linux, root and nft`);
    return undefined;
  }
  const ip = await findOptional(ground, 'ip', lack);
  if (ip === undefined) return undefined;
  const { env, folders, parts } = ground;
  const vpnLack = 'no VPN is served here';
  const wg = await findOptional(ground, 'wg', vpnLack);
  const userspace = wg === undefined ? undefined : await findOptional(ground, 'wireguard-go', vpnLack);
  const vpnTools = wg === undefined || userspace === undefined ? undefined : { ip, wg, 'wireguard-go': userspace };
  const network = await parts.take('tenant network', () =>
    startTenantNetwork({
      folder: folders.network,
      namespaces: namespacesOf(engine.host),
      tools: { ip, nft, ...vpnTools },
      path: env['PATH'] ?? '',
    }),
  );
  for (const part of [network.net, ...network.names]) parts.keep('tenant network', part);
  parts.stopLater('tenant network', network.stop);
  return { ...network, vpnTools };
}

const lostIdentity = 'docs/runbook.md, "Lost host identity", says what to do';

const ownerIn = (agentFolder: string): Owner | undefined => {
  const identityFile = join(agentFolder, 'identity.json');
  // The file is missing if an earlier start was interrupted before the agent enrolled.
  return existsSync(identityFile) ? readJsonFile(identityFile, decodeIdentity, lostIdentity) : undefined;
};

async function removeOwnFirewall(tool: Tool, agentFolder: string): Promise<void> {
  const owner = ownerIn(agentFolder);
  if (owner !== undefined) await removeFirewall(tool, firewallTable(owner));
}

/** Stops the containers of this stack's agent, which carry its identity as labels. */
async function stopOwnContainers(engine: Engine, agentFolder: string): Promise<void> {
  const owner = ownerIn(agentFolder);
  if (owner !== undefined) await stopContainers(engine.host, ownerLabels(owner));
}

/** The file with the key that seals the VPN area's secrets; made at the first start. */
function keptVpnKeys(folder: string): string {
  const path = join(folder, 'keys');
  if (!existsSync(path)) writePrivateFile(path, `dev:${randomBytes(32).toString('base64')}\n`);
  return path;
}

const readyUrlOf = (port: number): string => `http://127.0.0.1:${port}/readyz`;

const metricsUrls = (ports: Ports): string[] =>
  [ports.gatewayMetrics, ports.actorsMetrics, ports.agentMetrics].map((port) => `http://127.0.0.1:${port}/metrics`);
