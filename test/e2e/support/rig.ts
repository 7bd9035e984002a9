/**
 * The whole of Longshore for one test file: its own NATS, Redis and programs, on the run's engine
 * and registry.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, credsAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import type { Test } from 'tap';
import { createApi } from '../../../dev/api.ts';
import { repositoryRoot } from '../../../dev/paths.ts';
import { startNats, type Nats } from '../../../dev/servers/nats.ts';
import type { NatsCluster } from '../../../dev/servers/nats-cluster.ts';
import { freePort, type Server } from '../../../dev/process/process.ts';
import { startProgram, type ProgramName } from '../../../dev/programs.ts';
import { startRedis, type Redis } from '../../../dev/servers/redis.ts';
import { demoImage } from '../../../dev/servers/registry.ts';
import { devAudience, devIssuer, prepareTokenIssuer } from '../../../dev/tokens.ts';
import { readClusterEntry } from '../../../lib/nats/cluster-record.ts';
import { isRestoring } from '../../../schemas/records/cluster.ts';
import type { Container, ContainerStatusView } from '../../../schemas/api/container.ts';
import { viewEngine, type EngineView } from '../../host-agent/support/engine.ts';
import { sharedEngine, sharedRegistry } from '../../support/servers.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';

export interface Reply<T = unknown> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: T;
}

/** A program that can be killed and started again with the same settings. */
export interface Running {
  server(): Server;
  kill9(): Promise<void>;
  stop(): Promise<void>;
  /** `compiled`: folder of the compiled programs to start from now on, such as another release's. */
  start(compiled?: string): Promise<void>;
}

export interface Rig {
  readonly baseUrl: string;
  readonly dockerHost: string;
  readonly engine: EngineView;
  readonly nats: Nats;
  readonly redis: Redis;
  readonly actors: Running;
  readonly gateway: Running;
  readonly agent: Running;
  agentFolder(key: string): string;
  readonly metricsUrls: Readonly<Record<ProgramName, string>>;
  readonly image: { readonly registry: string; readonly repository: string; readonly tag: string };
  readonly mint: Awaited<ReturnType<typeof prepareTokenIssuer>>['mint'];
  /** Another host, whose agent works on the same engine. */
  addHost(key: string): Promise<Running>;
  client(tenant: string, scope?: string): Promise<Client>;
}

export type Client = Awaited<ReturnType<typeof clientOf>>;

const compute = '/api/v2/compute';
/** Longer than any route takes: those that make keys have a minute. */
const callDeadlineMs = 90_000;

export async function clientOf(baseUrl: string, token: string) {
  const call = async <T>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(baseUrl + path, {
      method,
      signal: AbortSignal.timeout(callDeadlineMs),
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
    const reply: Reply<T> = {
      status: response.status,
      headers: response.headers,
      text,
      body: (isJson && text !== '' ? JSON.parse(text) : undefined) as T,
    };
    return reply;
  };
  const id = (container: { id: string }): string => `${compute}/${container.id}`;
  const create = async (body: object, headers?: Record<string, string>) =>
    call<{ data: Container }>('POST', compute, body, headers);
  const wait = async (container: { id: string }, status: string, timeoutS = 120) =>
    call<{ data: ContainerStatusView }>('GET', `${id(container)}/wait?status=${status}&timeout=${timeoutS}`);
  return {
    token,
    call,
    create,
    /** Creates one container after the other, then waits until all run. */
    createRunning: async (bodies: readonly object[]): Promise<Container[]> => {
      const made: Container[] = [];
      for (const body of bodies) made.push((await create(body)).body.data);
      for (const container of made) {
        const { status, text } = await wait(container, 'running');
        if (status !== 200) throw new Error(`${container.name} does not run: ${status} ${text}`);
      }
      return made;
    },
    get: async (container: { id: string }) => call<{ data: Container }>('GET', id(container)),
    status: async (container: { id: string }) => call<{ data: ContainerStatusView }>('GET', `${id(container)}/status`),
    start: async (container: { id: string }) => call<{ data: Container }>('POST', `${id(container)}/start`),
    stop: async (container: { id: string }) => call<{ data: Container }>('POST', `${id(container)}/stop`),
    remove: async (container: { id: string }) => call<{ data: Container }>('DELETE', id(container)),
    wait,
    list: async () => call<{ data: Container[] }>('GET', compute),
  };
}

/** Compiled programs of this tree. */
export const thisRelease = join(repositoryRoot, 'dist');

/** Where a program keeps its log, and the compiled programs that it is started from. */
export interface Place {
  readonly folder: string;
  /** Default: `thisRelease`. */
  readonly compiled?: string;
}

async function startRunning(
  t: Test,
  name: ProgramName,
  settings: Record<string, string>,
  readyUrl: string,
  { folder, compiled: first = thisRelease }: Place,
): Promise<Running> {
  let compiled = first;
  const launch = async (): Promise<Server> =>
    startProgram({ name, settings, readyUrl, logFile: join(folder, `${name}.log`), compiled }, process.env);
  let server = await launch();
  t.teardown(async () => {
    if (server.exit() === undefined) await server.stop();
  });
  return {
    server: () => server,
    kill9: async () => void (await server.kill9()),
    stop: async () => void (await server.stop()),
    start: async (next = compiled) => {
      compiled = next;
      server = await launch();
    },
  };
}

/** What makes an agent quick enough for a test; what it waits for is the same. */
const quickAgent = {
  // The run's own, and those that tests play on loopback.
  REGISTRIES_ALLOWED: 'docker.io,127.0.0.1:*',
  // Every agent would run a container of its own beside the test's.
  CONTAINER_FIREWALL: 'off',
  BEAT_INTERVAL_MS: '300',
  SYNC_INTERVAL_MS: '2000',
  STOP_GRACE_MS: '3000',
  RESTART_BACKOFF_MIN_MS: '200',
  RESTART_BACKOFF_MAX_MS: '2000',
  RETRY_MIN_MS: '50',
  RETRY_MAX_MS: '500',
};

/** Where programs find NATS, and as whom. */
export type NatsAccess = Pick<
  NatsCluster,
  | 'urls'
  | 'credsFile'
  | 'gatewayCredsFile'
  | 'actorsCredsFile'
  | 'hostsAccount'
  | 'hostsSigningSeedFile'
  | 'sysCredsFile'
  | 'operatorSigningSeedFile'
> &
  Partial<Pick<NatsCluster, 'caFile'>>;

/** As the control plane. */
export const connectTo = async (nats: NatsAccess): Promise<NatsConnection> =>
  connect({
    servers: [...nats.urls],
    authenticator: credsAuthenticator(readFileSync(nats.credsFile)),
    ...(nats.caFile === undefined ? {} : { tls: { caFile: nats.caFile, handshakeFirst: true } }),
  });

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

export interface RigOptions {
  readonly gateway?: Record<string, string>;
  readonly actors?: Record<string, string>;
  readonly agent?: Record<string, string>;
}

export const hostKey = 'h1';

const urlOf = (port: number, path: string): string => `http://127.0.0.1:${port}${path}`;

interface ProgramSettings {
  readonly actors: Record<string, string>;
  readonly gateway: Record<string, string>;
}

const caOf = ({ caFile }: NatsAccess): Record<string, string> => (caFile === undefined ? {} : { NATS_CA_FILE: caFile });

type Issuer = Awaited<ReturnType<typeof prepareTokenIssuer>>;

/** One process of a program, and where it listens. */
interface Started {
  readonly program: Running;
  readonly metricsUrl: string;
}

async function startActors(
  t: Test,
  place: Place,
  nats: NatsAccess,
  settings: Record<string, string>,
): Promise<Started> {
  const port = await freePort();
  const program = await startRunning(
    t,
    'actors',
    {
      NATS_URLS: nats.urls.join(','),
      NATS_CREDS_FILE: nats.actorsCredsFile,
      ...caOf(nats),
      HOSTS_ACCOUNT: nats.hostsAccount,
      HOSTS_SIGNING_SEED_FILE: nats.hostsSigningSeedFile,
      NATS_SYSTEM_CREDS_FILE: nats.sysCredsFile,
      OPERATOR_SIGNING_SEED_FILE: nats.operatorSigningSeedFile,
      METRICS_PORT: String(port),
      ...settings,
    },
    urlOf(port, '/readyz'),
    place,
  );
  return { program, metricsUrl: urlOf(port, '/metrics') };
}

async function startGateway(
  t: Test,
  place: Place,
  nats: NatsAccess,
  issuer: Issuer,
  settings: Record<string, string>,
): Promise<Started & { readonly baseUrl: string }> {
  const [api, metrics] = [await freePort(), await freePort()];
  const program = await startRunning(
    t,
    'gateway',
    {
      NATS_URLS: nats.urls.join(','),
      NATS_CREDS_FILE: nats.gatewayCredsFile,
      ...caOf(nats),
      HTTP_PORT: String(api),
      AUTH_ISSUER: devIssuer,
      AUTH_AUDIENCE: devAudience,
      AUTH_JWKS_FILE: issuer.jwksFile,
      METRICS_PORT: String(metrics),
      ...settings,
    },
    urlOf(api, '/readyz'),
    place,
  );
  return { program, metricsUrl: urlOf(metrics, '/metrics'), baseUrl: urlOf(api, '') };
}

/** So many actors processes, and so many gateways. */
export async function startPrograms(
  t: Test,
  folder: string,
  nats: NatsAccess,
  settings: ProgramSettings,
  copies: { readonly actors: number; readonly gateways: number },
  compiled = thisRelease,
) {
  const issuer = await prepareTokenIssuer(join(folder, 'tokens'));
  const placeOf = (copy: number): Place => ({
    folder: copy === 0 ? folder : join(folder, `copy-${copy}`),
    compiled,
  });
  const actors: Awaited<ReturnType<typeof startActors>>[] = [];
  for (let copy = 0; copy < copies.actors; copy++)
    actors.push(await startActors(t, placeOf(copy), nats, settings.actors));
  const gateways: Awaited<ReturnType<typeof startGateway>>[] = [];
  for (let copy = 0; copy < copies.gateways; copy++)
    gateways.push(await startGateway(t, placeOf(copy), nats, issuer, settings.gateway));
  return { issuer, actors, gateways };
}

/** Actors and a gateway on a NATS of their own. */
export async function startControlPlane(t: Test, folder: string, settings: ProgramSettings) {
  const nats = await startNats({ dir: join(folder, 'nats') });
  t.teardown(() => nats.stop());
  const access: NatsAccess = { ...nats, urls: [nats.url] };
  const programs = await startPrograms(t, folder, access, settings, { actors: 1, gateways: 1 });
  const [actors, gateway] = [programs.actors[0]!, programs.gateways[0]!];
  return {
    nats,
    access,
    issuer: programs.issuer,
    actors: actors.program,
    gateway: gateway.program,
    metricsUrls: { actors: actors.metricsUrl, gateway: gateway.metricsUrl },
    baseUrl: gateway.baseUrl,
  };
}

export interface HostsOptions {
  readonly baseUrl: string;
  readonly issuer: Issuer;
  readonly nats: NatsAccess;
  readonly dockerHost: string;
  readonly settings: Record<string, string>;
  readonly compiled?: string;
}

/** Hosts whose agents work on the run's engine. */
export async function prepareHosts(t: Test, folder: string, options: HostsOptions) {
  const { baseUrl, issuer, nats, dockerHost, compiled = thisRelease } = options;
  // Containers outlive their agent by design; a test's must not outlive the test. Registered before
  // the agents: torn down after them.
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

export const clientFor = async (baseUrl: string, issuer: Issuer, tenant: string, scope?: string): Promise<Client> =>
  clientOf(
    baseUrl,
    await issuer.mint({
      tenant,
      subject: `${tenant}-user`,
      lifetimeS: 3600,
      ...(scope === undefined ? {} : { scope }),
    }),
  );

export async function startRig(t: Test, options: RigOptions = {}): Promise<Rig> {
  const folder = temporaryFolder(t, 'longshore-e2e-');
  const dockerHost = await sharedEngine(t);
  const registry = await sharedRegistry(t);
  const redis = await startRedis({ folder: join(folder, 'redis') });
  t.teardown(() => redis.stop());
  const controlPlane = await startControlPlane(t, folder, {
    actors: { HOST_UNKNOWN_MS: '3000', ...options.actors },
    gateway: { ...redis.settings, ...options.gateway },
  });
  const { nats, access, issuer, actors, gateway, baseUrl, metricsUrls } = controlPlane;
  const settings = options.agent ?? {};
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
    agentFolder: hosts.agentFolder,
    addHost: async (key) => (await hosts.startAgent(key)).program,
    metricsUrls: { ...metricsUrls, 'host-agent': agent.metricsUrl },
    image: { registry, ...demoImage },
    mint: issuer.mint,
    client: async (tenant, scope) => clientFor(baseUrl, issuer, tenant, scope),
  };
}

/** Names for as many containers: c0, c1, … */
export const named = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

/** The programs, an engine and its images take longer than one program's own parts. */
const deadlineMs = 180_000;

/** `until`, with the time that the whole takes. */
export const eventually = <T>(
  what: string,
  look: () => Promise<T>,
  isSo: (value: T) => boolean,
  withinMs = deadlineMs,
): Promise<T> => until(what, look, isSo, withinMs);
