/**
 * The world of a run: three nats-servers, two actors, two gateways, one agent on a simulated
 * engine, each on a machine of its own. Without network namespaces all run on loopback, and there
 * is no wire to cut.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { connect, credsAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import { createApi } from '../../../dev/api.ts';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { startNatsCluster, type NatsCluster } from '../../../dev/servers/nats-cluster.ts';
import { describeExit, freePort, type Exit } from '../../../dev/process/process.ts';
import type { Program, ServingName } from '../../../dev/stack/programs.ts';
import { devAudience, devIssuer, prepareTokenIssuer } from '../../../dev/tokens.ts';
import { within } from '../../../lib/time/backoff.ts';
import { createRandom, type Random } from '../../actors/support/random.ts';
import type { Scope } from '../../support/machine.ts';
import { startTroubledEngine, type TroubledEngine } from '../engine/engine.ts';
import { membersOf, type Member } from './members.ts';
import { layWire, type NatsPlaceName, type Place, type Wire } from './wire.ts';
import { leaderIn, managerOf } from './streams.ts';
import { supervise, type Controlled } from './supervise.ts';
import { unluckyTenant } from '../load/tenants.ts';

export const programPlaces = ['a1', 'a2', 'g1', 'g2', 'h1'] as const;
export type ProgramPlace = (typeof programPlaces)[number];

export interface Gateway {
  readonly place: 'g1' | 'g2';
  readonly baseUrl: string;
}

export interface World {
  readonly folder: string;
  /** The state folder of the agent. */
  readonly agentFolder: string;
  readonly nats: NatsCluster;
  /** The harness's own connection, with all rights in the control plane's account. */
  readonly nc: NatsConnection;
  /** Programs by place; with one actors process there is no a2. */
  readonly processes: ReadonlyMap<Place, Controlled>;
  /** The file with the heap in use of a program (heap-preload.ts); `undefined` for a server. */
  heapFile(place: Place): string | undefined;
  /** Programs that ended by themselves; the harness started them again. */
  readonly endings: readonly string[];
  readonly gateways: readonly Gateway[];
  /** `undefined` without network namespaces. */
  readonly wire: Wire | undefined;
  readonly engine: TroubledEngine;
  /** Settings of the agent, for its next start. */
  readonly agentSettings: Record<string, string>;
  token(tenant: string, scope?: string): Promise<string>;
  members(): Promise<Member[]>;
  /** The metrics of an actors process, as text. */
  metricsOf(place: 'a1' | 'a2'): Promise<string>;
  /** The server that leads a stream now; `undefined` if it has no leader. */
  leaderOf(stream: string): Promise<NatsPlaceName | undefined>;
  /** Asks this server to lead the stream; it may not happen. */
  giveLead(stream: string, server: NatsPlaceName): Promise<void>;
  /** Shifts the wall clock of a program. */
  setClock(place: ProgramPlace, offsetMs: number): void;
}

export interface WorldOptions {
  readonly folder: string;
  /** Folder of the compiled programs. */
  readonly compiled: string;
  readonly actorsCount: 1 | 2;
  readonly hasNamespaces: boolean;
  readonly random: Random;
}

const ports = { nats: 4222, route: 6222, api: 8080, metrics: 9100 };
export const hostKey = 'h1';
/** Longer than any run and any step of a clock. */
const tokenLifetimeS = 7 * 24 * 3600;
/** Tokens are dated back this far, so that a clock set back does not find them from the future. */
const tokenBackdateMs = 24 * 3_600_000;
const hostDeadlineMs = 30_000;
const leaderAskMs = 2_000;

/** Settings that make an agent quick enough for a run of minutes. */
const quickAgent = {
  HEARTBEAT_INTERVAL: '500ms',
  SYNC_INTERVAL: '2s',
  STOP_GRACE: '3s',
  RESTART_BACKOFF_MIN: '200ms',
  RESTART_BACKOFF_MAX: '2s',
  UPDATE_VERIFY: '1s',
  USAGE_INTERVAL: '1s',
  USAGE_REPORT_INTERVAL: '2s',
  RETRY_MIN: '50ms',
  RETRY_MAX: '1s',
  REGISTRIES_ALLOWED: 'registry.test',
  CONTAINER_FIREWALL: 'off',
};

const programOf: Readonly<Record<ProgramPlace, ServingName>> = {
  a1: 'actors',
  a2: 'actors',
  g1: 'gateway',
  g2: 'gateway',
  h1: 'host-agent',
};

/**
 * Go's collector lets a small heap grow to a multiple of what is in use before it collects. Above
 * this bound it collects at once, so that a server which grows holds more.
 */
const natsHeap = '64MiB';

export async function startWorld(scope: Scope, options: WorldOptions): Promise<World> {
  const { folder, random } = options;
  const wire = options.hasNamespaces ? await layWire(scope, join(folder, 'machines')) : undefined;
  const addressOf = (place: Place): string => wire?.address(place) ?? '127.0.0.1';
  const portOf = async (port: number): Promise<number> => (wire === undefined ? freePort() : port);
  const entered = (place: Place): { readonly enter?: readonly string[] } =>
    wire === undefined ? {} : { enter: wire.machines[place].enter };

  const engine = await startTroubledEngine(
    join(folder, 'engine.sock'),
    unluckyTenant,
    createRandom(random.below(2 ** 31)),
  );
  scope.teardown(() => engine.close());

  const natsPlaces = await Promise.all(
    (['n1', 'n2', 'n3'] as const).map(async (name) => ({
      name,
      address: addressOf(name),
      ...(wire === undefined ? {} : { clientPort: ports.nats, clusterPort: ports.route }),
      ...entered(name),
    })),
  );
  const tool = await toolHere('nats-server');
  const nats = await startNatsCluster({
    dir: join(folder, 'nats'),
    places: natsPlaces,
    tool: { ...tool, env: { ...tool.env, GOMEMLIMIT: natsHeap } },
  });
  scope.teardown(() => nats.stop());

  const issuer = await prepareTokenIssuer(join(folder, 'tokens'), () => Date.now() - tokenBackdateMs);
  const token = (tenant: string, given?: string): Promise<string> =>
    issuer.mint({
      tenant,
      subject: `${tenant}-user`,
      lifetimeS: tokenLifetimeS,
      ...(given === undefined ? {} : { scope: given }),
    });

  const clockFile = (place: Place): string => join(folder, `clock-${place}`);
  const heapFile = (place: Place): string => join(folder, `heap-${place}`);
  const preloads = ['clock-preload', 'heap-preload'].map(
    (name) => `--import ${pathToFileURL(join(import.meta.dirname, `../${name}.js`)).href}`,
  );
  const processes = new Map<Place, Controlled>();
  const endings: string[] = [];
  for (const { name } of nats.nodes) processes.set(name as NatsPlaceName, nodeOf(nats, name));

  const launch = async (
    place: ProgramPlace,
    settings: Record<string, string>,
    ready: { readonly port: number; readonly path: string },
  ): Promise<void> => {
    writeFileSync(clockFile(place), '0');
    const program: Program = {
      name: programOf[place],
      get settings() {
        return {
          NODE_OPTIONS: preloads.join(' '),
          FAULTS_CLOCK_FILE: clockFile(place),
          FAULTS_HEAP_FILE: heapFile(place),
          METRICS_HOST: addressOf(place),
          NATS_URLS: nats.urls.join(','),
          NATS_CA_FILE: nats.caFile,
          ...settings,
        };
      },
      readyUrl: `http://${addressOf(place)}:${ready.port}${ready.path}`,
      logFile: join(folder, 'logs', `${place}.log`),
      compiled: options.compiled,
      ...entered(place),
    };
    const ended = (exit: Exit): void => void endings.push(`${place} ${describeExit(exit)}`);
    processes.set(place, await supervise(scope, program, ended));
  };

  const actorsMetrics = new Map<Place, string>();
  const startActors = async (place: 'a1' | 'a2'): Promise<void> => {
    const port = await portOf(ports.metrics);
    const settings = {
      NATS_CREDS_FILE: nats.actorsCredsFile,
      LONGSHORE_REPLICAS: '3',
      HOSTS_ACCOUNT: nats.hostsAccount,
      HOSTS_SIGNING_SEED_FILE: nats.hostsSigningSeedFile,
      NATS_SYSTEM_CREDS_FILE: nats.sysCredsFile,
      OPERATOR_SIGNING_SEED_FILE: nats.operatorSigningSeedFile,
      METRICS_PORT: String(port),
    };
    actorsMetrics.set(place, `http://${addressOf(place)}:${port}/metrics`);
    await launch(place, settings, { port, path: '/readyz' });
  };
  const startGateway = async (place: Gateway['place']): Promise<Gateway> => {
    const [port, metricsPort] = [await portOf(ports.api), await portOf(ports.metrics)];
    const settings = {
      NATS_CREDS_FILE: nats.gatewayCredsFile,
      HTTP_HOST: addressOf(place),
      HTTP_PORT: String(port),
      AUTH_ISSUER: devIssuer,
      AUTH_AUDIENCE: devAudience,
      AUTH_JWKS_FILE: issuer.jwksFile,
      METRICS_PORT: String(metricsPort),
      // The load must reach the owners, not end at the rate limits.
      RATE_LIMIT_TENANT_PER_SECOND: '1000000',
      RATE_LIMIT_TENANT_BURST: '1000000',
    };
    await launch(place, settings, { port, path: '/readyz' });
    return { place, baseUrl: `http://${addressOf(place)}:${port}` };
  };
  const startAllActors = async (): Promise<void> => {
    // The first makes the cluster: two that make a stream at once may wait for each other until
    // their deadline.
    for (const place of (['a1', 'a2'] as const).slice(0, options.actorsCount)) await startActors(place);
  };
  const [gateways] = await Promise.all([Promise.all((['g1', 'g2'] as const).map(startGateway)), startAllActors()]);
  const [gateway] = gateways;
  if (gateway === undefined) throw new Error('no gateway');
  const api = createApi(gateway.baseUrl);
  const operator = await token('ops', 'operator');
  const agentFolder = join(folder, 'agent');
  const agentPort = await portOf(ports.metrics);
  const agentSettings: Record<string, string> = {
    ...quickAgent,
    LONGSHORE_URL: gateway.baseUrl,
    LONGSHORE_JOIN_TOKEN: await api.joinToken(operator, { key: hostKey, region: 'default' }),
    STATE_DIR: agentFolder,
    DOCKER_HOST: engine.host,
    METRICS_PORT: String(agentPort),
    CAPACITY_CPU_MILLIS: '1000000',
    CAPACITY_MEM_BYTES: String(1024 ** 4),
  };
  await launch('h1', agentSettings, { port: agentPort, path: '/readyz' });
  await api.hostIsUp(operator, hostKey, AbortSignal.timeout(hostDeadlineMs));
  // A new join token makes the one in the agent's settings invalid, as in a later month.
  await api.joinToken(operator, { key: hostKey, region: 'default' });

  const nc = await connectTo(nats);
  scope.teardown(() => nc.close());
  return {
    folder,
    agentFolder,
    nats,
    nc,
    processes,
    heapFile: (place) => (place in programOf ? heapFile(place) : undefined),
    endings,
    gateways,
    wire,
    engine,
    agentSettings,
    token,
    members: () => membersOf(nc),
    metricsOf: async (place) => {
      const url = actorsMetrics.get(place);
      if (url === undefined) throw new Error(`${place} was not started`);
      const answer = await fetch(url, { signal: AbortSignal.timeout(leaderAskMs) });
      return answer.text();
    },
    leaderOf: async (stream) => {
      const ask = async () => leaderIn(await (await managerOf(nc)).streams.info(stream));
      return within(ask(), leaderAskMs, `the leader of ${stream}`).catch(() => undefined);
    },
    giveLead: async (stream, server) => {
      const ask = JSON.stringify({ placement: { preferred: server } });
      // A stream without a leader does not answer; it may get this one all the same.
      await nc
        .request(`$JS.API.STREAM.LEADER.STEPDOWN.${stream}`, ask, { timeout: leaderAskMs })
        .catch(() => undefined);
    },
    setClock: (place, offsetMs) => writeFileSync(clockFile(place), String(offsetMs)),
  };
}

function nodeOf(nats: NatsCluster, name: string): Controlled {
  const node = nats.nodes.find((each) => each.name === name);
  if (node === undefined) throw new Error(`no server ${name}`);
  return node;
}

const connectTo = (nats: NatsCluster): Promise<NatsConnection> =>
  connect({
    servers: [...nats.urls],
    authenticator: credsAuthenticator(readFileSync(nats.credsFile)),
    tls: { caFile: nats.caFile, handshakeFirst: true },
    maxReconnectAttempts: -1,
    reconnectTimeWait: 100,
    timeout: leaderAskMs,
    name: 'fault harness',
  });
