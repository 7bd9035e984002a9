/**
 * The whole of Longshore on one machine: servers and programs, each started when what it stands on
 * is ready, started again when it ends by itself, and stopped in the reverse order. `npm start`
 * runs one; so may an end-to-end test, in a folder of its own.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { firewallTable } from '../host-agent/network/firewall-rules.ts';
import { createApi, type Api } from './api.ts';
import { stopContainers } from './servers/engine-api.ts';
import { findEngine, requirePrivateEngine, startPrivateEngine, type Engine } from './servers/engine.ts';
import { startNats, type Nats } from './servers/nats.ts';
import { pathWithNft, removeFirewall } from './servers/nft.ts';
import { keptPorts, type Ports } from './ports.ts';
import { startRestartable, type Restartable } from './process/process.ts';
import { startProgram, type Program } from './programs.ts';
import { writePrivateFile } from '../cli/keys/nats-identity.ts';
import { startRedis } from './servers/redis.ts';
import { demoImage, pushDemoImage, startRegistry } from './servers/registry.ts';
import { say, step } from './steps.ts';
import { Supervisor } from './supervisor.ts';
import { devAudience, devIssuer, mintDevTokens, prepareTokenIssuer, type DevTokens } from './tokens.ts';
import { findTool, ToolMissing, type Tool } from './fetch/tools.ts';
import type { ToolName } from './fetch/tool-table.ts';
import { type Owner, ownerLabels } from '../host-agent/docker/ownership.ts';

export const demoNetwork = 'demo';
export const localHost = { key: 'local', region: 'default' } as const;

export interface StackOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly stateFolder: string;
  readonly cacheFolder: string;
  /** Aborted: go no further; what was started is stopped. */
  readonly signal: AbortSignal;
}

export interface Stack {
  readonly api: Api;
  readonly tokens: DevTokens;
  readonly engine: Engine;
  readonly nats: Nats;
  readonly image: { readonly registry: string; readonly repository: string; readonly tag: string };
  readonly metricsUrls: readonly string[];
  stop(): Promise<void>;
}

interface Part {
  readonly name: string;
  stop(): Promise<unknown>;
}

/** Where state of each part lies, and logs. */
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
});

export async function startStack(options: StackOptions): Promise<Stack> {
  const parts: Part[] = [];
  const supervisor = new Supervisor({ say, nowMs: () => performance.now() });
  const stop = async (): Promise<void> => {
    // First: what is stopped from here on is not to be started again.
    await supervisor.stop();
    for (const part of parts.splice(0).toReversed()) await step(`stopping ${part.name}`, () => part.stop());
  };
  try {
    return await startParts(options, parts, supervisor, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startParts(
  options: StackOptions,
  parts: Part[],
  supervisor: Supervisor,
  stop: () => Promise<void>,
): Promise<Stack> {
  const { env, cacheFolder, signal } = options;
  const folders = layOut(options.stateFolder);
  /** Takes a step, unless the whole was called off meanwhile. */
  const take = async <T>(name: string, work: () => Promise<T>, detail?: (result: T) => string): Promise<T> => {
    signal.throwIfAborted();
    // Called off, what is half started is nobody's here: it is in the ledger, and ends with this
    // process.
    return unlessAborted(step(name, work, detail), signal);
  };
  /** Starts a part, and keeps it running from then on. */
  const start = async <T>(
    name: string,
    work: () => Promise<T>,
    restartable: (result: T) => Restartable,
    detail?: (result: T) => string,
  ): Promise<T> => {
    const result = await take(name, work, detail);
    const part = restartable(result);
    parts.push({ name, stop: () => part.stop() });
    supervisor.watch(name, part);
    return result;
  };
  const tool = (name: ToolName): Promise<Tool> =>
    take(
      `find ${name}`,
      () => findTool(name, { env, cacheFolder, report: (what) => process.stdout.write(`· ${what} …\n`) }),
      ({ version, origin }) => `${version} (${origin})`,
    );
  const program = (settings: Program): Promise<Restartable> =>
    start(
      settings.name,
      () => startRestartable((called) => startProgram(settings, env, called)),
      (made) => made,
    );

  const found = await findEngine(env);
  if (found === undefined) requirePrivateEngine();
  const natsTool = await tool('nats-server');
  const redisTool = await tool('redis-server');
  const registryTool = await tool('docker-registry');
  await tool('busybox');
  const ports = await keptPorts(folders.ports);
  const tokenIssuer = await prepareTokenIssuer(folders.tokens);
  const tokens = await mintDevTokens(tokenIssuer);

  const firewall = await findFirewall(tool);
  if (firewall !== undefined) {
    // After the engine, and so after the last container.
    parts.push({ name: 'container firewall', stop: () => removeOwnFirewall(firewall, folders.agent) });
  }
  const engine: Engine =
    found ??
    (await (async () => {
      const dockerd = await tool('dockerd');
      return start(
        'Docker engine (private)',
        () => startPrivateEngine({ dir: folders.engine, tool: dockerd, firewall: true, throwaway: false }),
        (made) => ({ server: made.server, stop: made.stop, restart: made.start }),
        ({ version }) => version,
      );
    })());
  const redis = await start(
    'Redis',
    () => startRedis({ tool: redisTool, folder: folders.redis, port: ports.redis }),
    (made) => made,
  );
  const registry = await start(
    'registry',
    () => startRegistry({ tool: registryTool, folder: folders.registry, port: ports.registry }),
    (made) => made,
    ({ address }) => address,
  );
  await take(`image ${demoImage.repository}:${demoImage.tag}`, () => pushDemoImage(registry.address));
  const nats = await start(
    'NATS with JetStream',
    () => startNats({ tool: natsTool, dir: folders.nats, port: ports.nats }),
    (made) => made,
    ({ url }) => url,
  );

  const logFile = (name: string): string => join(folders.logs, `${name}.log`);
  const metrics = metricsUrls(ports);
  await program({
    name: 'actors',
    settings: {
      NATS_URLS: nats.url,
      NATS_CREDS_FILE: nats.actorsCredsFile,
      HOSTS_ACCOUNT: nats.hostsAccount,
      HOSTS_SIGNING_SEED_FILE: nats.hostsSigningSeedFile,
      NATS_SYSTEM_CREDS_FILE: nats.sysCredsFile,
      OPERATOR_SIGNING_SEED_FILE: nats.operatorSigningSeedFile,
      METRICS_PORT: String(ports.actorsMetrics),
    },
    readyUrl: readyUrlOf(ports.actorsMetrics),
    logFile: logFile('actors'),
  });
  await program({
    name: 'gateway',
    settings: {
      NATS_URLS: nats.url,
      NATS_CREDS_FILE: nats.gatewayCredsFile,
      HTTP_PORT: String(ports.api),
      ...redis.settings,
      AUTH_ISSUER: devIssuer,
      AUTH_AUDIENCE: devAudience,
      AUTH_JWKS_FILE: tokenIssuer.jwksFile,
      VPN_KEYS_FILE: keptVpnKeys(folders.vpn),
      VPN_DEFAULT_NETWORK: demoNetwork,
      // A laptop's scripts and benchmarks are nobody's neighbours.
      RATE_LIMIT_TENANT_PER_SECOND: '1000000',
      RATE_LIMIT_TENANT_BURST: '1000000',
      METRICS_PORT: String(ports.gatewayMetrics),
    },
    readyUrl: readyUrlOf(ports.api),
    logFile: logFile('gateway'),
  });
  const api = createApi(`http://127.0.0.1:${ports.api}`);
  if (engine === found) {
    // An agent leaves its containers running, and this engine is not ours to stop; so they are
    // stopped after the agent.
    parts.push({ name: 'containers', stop: () => stopOwnContainers(engine, folders.agent) });
  }
  await program({
    name: 'host-agent',
    settings: {
      LONGSHORE_URL: api.baseUrl,
      LONGSHORE_JOIN_TOKEN: await api.joinToken(tokens.operator.token, localHost),
      STATE_DIR: folders.agent,
      DOCKER_HOST: engine.host,
      NATS_URLS: nats.url,
      ...(firewall === undefined
        ? { CONTAINER_FIREWALL: 'off' }
        : { PATH: pathWithNft(join(options.stateFolder, 'bin'), firewall, env['PATH'] ?? '') }),
      REGISTRIES_ALLOWED: `public,${registry.address}`,
      // A private engine serves nothing else.
      ...(engine.origin === 'private' ? { IMAGES_COLLECTED: 'all' } : {}),
      METRICS_PORT: String(ports.agentMetrics),
    },
    readyUrl: readyUrlOf(ports.agentMetrics),
    logFile: logFile('host-agent'),
  });
  await take('host in the fleet', () => api.hostIsUp(tokens.operator.token, localHost.key, signal));

  const image = { registry: registry.address, ...demoImage };
  return { api, tokens, engine, nats, image, metricsUrls: metrics, stop };
}

/** Undefined where containers go without: rules need Linux, root and nft. */
async function findFirewall(tool: (name: ToolName) => Promise<Tool>): Promise<Tool | undefined> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    say('containers are not kept from this machine and its network: that needs Linux and root');
    return undefined;
  }
  return tool('nft').catch((error: unknown) => {
    if (!(error instanceof ToolMissing)) throw error;
    say(`containers are not kept from this machine and its network: ${error.message.split('\n')[0]}`);
    return undefined;
  });
}

const ownerIn = (agentFolder: string): Owner | undefined => {
  const identityFile = join(agentFolder, 'identity.json');
  // Interrupted before it enrolled.
  return existsSync(identityFile) ? (JSON.parse(readFileSync(identityFile, 'utf8')) as Owner) : undefined;
};

async function removeOwnFirewall(tool: Tool, agentFolder: string): Promise<void> {
  const owner = ownerIn(agentFolder);
  if (owner !== undefined) await removeFirewall(tool, firewallTable(owner));
}

/**
 * Those of this stack's agent, which knows by its identity what it is called; see
 * host-agent/reconcile/observed.ts.
 */
async function stopOwnContainers(engine: Engine, agentFolder: string): Promise<void> {
  const owner = ownerIn(agentFolder);
  if (owner !== undefined) await stopContainers(engine.host, ownerLabels(owner));
}

/** The promise's outcome, or the abort's, whichever comes first. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let stopWaiting = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stopWaiting = () => reject(new Error('interrupted'));
    signal.addEventListener('abort', stopWaiting, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', stopWaiting);
    promise.catch(() => undefined);
  }
}

/** A file with the key that the VPN area's secrets are sealed under, made at the first start. */
function keptVpnKeys(folder: string): string {
  const path = join(folder, 'keys');
  if (!existsSync(path)) writePrivateFile(path, `dev:${randomBytes(32).toString('base64')}\n`);
  return path;
}

const readyUrlOf = (port: number): string => `http://127.0.0.1:${port}/readyz`;

const metricsUrls = (ports: Ports): string[] =>
  [ports.gatewayMetrics, ports.actorsMetrics, ports.agentMetrics].map((port) => `http://127.0.0.1:${port}/metrics`);
