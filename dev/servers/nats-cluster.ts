/**
 * Three nats-servers with clustered JetStream, TLS and the accounts of nats-identity.ts, as in
 * production but on one machine. Each server may run in its own network namespace, provided that
 * this process can reach it.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { connect, credsAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import { sleep } from '../../lib/time/backoff.ts';
import { launchNats, natsConfiguration, natsControls, natsGreets, natsLogFile } from './nats.ts';
import { makeNatsCertificates } from './nats-certificates.ts';
import { prepareNatsIdentity, type NatsIdentityFiles } from '../../ops/nats-keys/nats-identity.ts';
import { freePort, type Server } from '../process/process.ts';
import { toolHere, type ServerTool } from '../fetch/tools.ts';

export interface NatsPlace {
  readonly name: string;
  readonly address: string;
  /**
   * Command prefix that enters a network namespace, such as `nsenter --net=<file>`. If absent, the
   * server runs in the caller's namespace.
   */
  readonly enter?: readonly string[];
  /** If a port is absent, a free one is chosen. */
  readonly clientPort?: number;
  readonly clusterPort?: number;
}

export interface NatsNode {
  readonly name: string;
  readonly url: string;
  readonly address: string;
  readonly storeDir: string;
  readonly logFile: string;
  /** The running server; each `start` replaces it. */
  server(): Server;
  /**
   * Starts the server again after `stop` or `kill9`, with the same configuration and folder.
   * Resolves when it accepts clients.
   */
  start(): Promise<void>;
  stop(): Promise<void>;
  kill9(): Promise<void>;
  pause(): void;
  resume(): void;
}

export interface NatsCluster extends Pick<
  NatsIdentityFiles,
  | 'gatewayCredsFile'
  | 'actorsCredsFile'
  | 'sysCredsFile'
  | 'operatorSigningSeedFile'
  | 'hostsSigningSeedFile'
  | 'hostsAccount'
  | 'hostsAccountFile'
> {
  readonly nodes: readonly NatsNode[];
  readonly urls: readonly string[];
  readonly caFile: string;
  /** Credentials of the user for backups and tools in the control plane's account. */
  readonly credsFile: string;
  stop(): Promise<void>;
}

export interface NatsClusterOptions {
  /** Holds keys, certificates, configurations, streams and logs. */
  readonly dir: string;
  readonly tool?: ServerTool;
  /** Default: three on 127.0.0.1. */
  readonly places?: readonly NatsPlace[];
}

const loopback: readonly NatsPlace[] = ['n1', 'n2', 'n3'].map((name) => ({ name, address: '127.0.0.1' }));

type Placed = Required<Omit<NatsPlace, 'enter'>> & Pick<NatsPlace, 'enter'>;

/**
 * Chooses the ports once, before any server starts, because each server's configuration names the
 * others' ports.
 */
async function withPorts(places: readonly NatsPlace[]): Promise<Placed[]> {
  const placed: Placed[] = [];
  for (const place of places) {
    const clientPort = place.clientPort ?? (await freePort());
    placed.push({ ...place, clientPort, clusterPort: place.clusterPort ?? (await freePort()) });
  }
  return placed;
}

const tlsConfiguration = (files: { certFile: string; keyFile: string }, more: readonly string[]): string[] => [
  'tls {',
  // On a busy machine a handshake takes longer than the two seconds that a server waits.
  '  timeout: 30',
  `  cert_file: ${JSON.stringify(files.certFile)}`,
  `  key_file: ${JSON.stringify(files.keyFile)}`,
  ...more.map((line) => `  ${line}`),
  '}',
];

/** True if the server presents a valid certificate and sends its INFO line. */
async function greetsOverTls(host: string, port: number, caFile: string, signal: AbortSignal): Promise<boolean> {
  const socket = connectTls({ host, port, ca: readFileSync(caFile) });
  try {
    return await natsGreets(socket, signal);
  } finally {
    socket.destroy();
  }
}

const metaDeadlineMs = 30_000;
const askMs = 1_000;

interface ServerReport {
  readonly server: { readonly name: string };
  readonly data?: {
    readonly meta_cluster?: {
      readonly leader?: string;
      readonly replicas?: readonly { readonly current: boolean; readonly offline?: boolean }[];
    };
  };
}

const connectAs = (cluster: Omit<NatsCluster, 'stop'>, credsFile: string): Promise<NatsConnection> =>
  connect({
    servers: [...cluster.urls],
    authenticator: credsAuthenticator(readFileSync(credsFile)),
    tls: { caFile: cluster.caFile, handshakeFirst: true },
    timeout: askMs,
  });

/**
 * True if the leader of JetStream's metadata group sees all other servers. Until then, it may
 * refuse to create a replicated stream.
 */
async function metaLeaderHearsAll(system: NatsConnection, servers: number): Promise<boolean> {
  const leads = ({ server, data }: ServerReport): boolean => {
    const { leader, replicas = [] } = data?.meta_cluster ?? {};
    const heard = replicas.filter(({ current, offline }) => current && offline !== true);
    return leader === server.name && heard.length === servers - 1;
  };
  const bounds = { strategy: 'count', maxMessages: servers, maxWait: askMs } as const;
  for await (const answer of await system.requestMany('$SYS.REQ.SERVER.PING.JSZ', '', bounds)) {
    if (leads(answer.json<ServerReport>())) return true;
  }
  return false;
}

/**
 * True if JetStream serves the control plane's account, which happens some time after a leader is
 * elected.
 */
async function accountIsServed(control: NatsConnection): Promise<boolean> {
  const answer = await control.request('$JS.API.INFO', '', { timeout: askMs });
  return answer.json<{ error?: object }>().error === undefined;
}

async function untilJetStream(cluster: Omit<NatsCluster, 'stop'>): Promise<void> {
  const connections: NatsConnection[] = [];
  try {
    const system = await connectAs(cluster, cluster.sysCredsFile);
    connections.push(system);
    const control = await connectAs(cluster, cluster.credsFile);
    connections.push(control);
    const endMs = performance.now() + metaDeadlineMs;
    while (performance.now() < endMs) {
      const heard = await metaLeaderHearsAll(system, cluster.nodes.length);
      if (heard && (await accountIsServed(control).catch(() => false))) return;
      await sleep(50);
    }
    throw new Error(`JetStream was not ready on all servers within ${metaDeadlineMs} ms`);
  } finally {
    await Promise.all(connections.map((nc) => nc.close()));
  }
}

/** Resolves when all servers accept clients and the leader of JetStream sees all of them. */
export async function startNatsCluster(options: NatsClusterOptions): Promise<NatsCluster> {
  const { dir } = options;
  const tool = options.tool ?? (await toolHere('nats-server'));
  const identity = await prepareNatsIdentity(join(dir, 'keys'));
  const places = await withPorts(options.places ?? loopback);
  const certificates = await makeNatsCertificates(join(dir, 'tls'), places);
  const { caFile, routesCaFile } = certificates;
  const routes = places.map(({ address, clusterPort }) => `"nats://${address}:${clusterPort}"`);

  const nodeOf = (place: Placed, index: number) => {
    const { name, address, clientPort, clusterPort, enter } = place;
    const folder = join(dir, name);
    const storeDir = join(folder, 'jetstream');
    const files = certificates.servers[index]!;
    const configuration = natsConfiguration({
      name,
      address,
      port: clientPort,
      storeDir,
      accountsDir: join(folder, 'accounts'),
      identity,
      more: [
        ...tlsConfiguration(files, ['handshake_first: true']),
        'cluster {',
        '  name: longshore',
        `  listen: "${address}:${clusterPort}"`,
        `  routes: [${routes.join(', ')}]`,
        // deploy/nats/nats-server.conf explains these values.
        '  pool_size: -1',
        '  ping_interval: "1s"',
        '  ping_max: 2',
        ...tlsConfiguration(files.route, [`ca_file: ${JSON.stringify(routesCaFile)}`, 'verify: true']).map(
          (line) => `  ${line}`,
        ),
        '}',
      ],
    });
    const ready = (signal: AbortSignal): Promise<boolean> => greetsOverTls(address, clientPort, caFile, signal);
    let running: Server | undefined;
    const server = (): Server => {
      if (running === undefined) throw new Error(`${name} was not started`);
      return running;
    };
    const start = async (): Promise<void> => {
      // Clears a killed server's ledger entries before its successor starts.
      await running?.stop();
      const prefix = enter === undefined ? {} : { enter };
      const port = clientPort;
      running = await launchNats({ name: `nats-server ${name}`, tool, folder, configuration, ...prefix, port, ready });
    };
    const url = `tls://${address}:${clientPort}`;
    return { name, url, address, storeDir, logFile: natsLogFile(folder), start, ...natsControls(server) };
  };

  const nodes = places.map(nodeOf);
  const stop = async (): Promise<void> => void (await Promise.all(nodes.map((node) => node.stop())));
  const cluster: NatsCluster = {
    nodes,
    urls: nodes.map(({ url }) => url),
    caFile,
    credsFile: identity.cpCredsFile,
    gatewayCredsFile: identity.gatewayCredsFile,
    actorsCredsFile: identity.actorsCredsFile,
    sysCredsFile: identity.sysCredsFile,
    operatorSigningSeedFile: identity.operatorSigningSeedFile,
    hostsSigningSeedFile: identity.hostsSigningSeedFile,
    hostsAccount: identity.hostsAccount,
    hostsAccountFile: identity.hostsAccountFile,
    stop,
  };
  const started = await Promise.allSettled(nodes.map((node) => node.start()));
  const failed = started.find((outcome) => outcome.status === 'rejected');
  try {
    if (failed !== undefined) throw failed.reason;
    await untilJetStream(cluster);
    return cluster;
  } catch (error) {
    await Promise.all(nodes.filter((_, index) => started[index]!.status === 'fulfilled').map((node) => node.stop()));
    throw error;
  }
}
