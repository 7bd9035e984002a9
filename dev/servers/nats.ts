/** Runs one nats-server with JetStream on loopback, with the accounts of nats-identity.ts. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { prepareNatsIdentity, type NatsIdentity } from '../../ops/nats-keys/nats-identity.ts';
import { writePrivateFile } from '../../lib/process/private-file.ts';
import { onFreePort, startServer, type Restartable, type Server } from '../process/process.ts';
import { accountsConfiguration } from '../../ops/nats-keys/accounts.ts';
import { toolHere, type ServerTool } from '../fetch/tools.ts';

export interface NatsOptions {
  readonly tool?: ServerTool;
  /**
   * Holds keys, configuration, streams and log. A second start with the same folder finds them
   * again.
   */
  readonly dir: string;
  readonly port?: number;
  /** Additional lines of the configuration file; asked for at each start. */
  readonly more?: () => readonly string[];
}

export interface Nats extends Restartable {
  readonly url: string;
  readonly port: number;
  /** Credentials of the user for backups and tools in the control plane's account. */
  readonly credsFile: string;
  readonly gatewayCredsFile: string;
  readonly actorsCredsFile: string;
  readonly sysCredsFile: string;
  readonly operatorSigningSeedFile: string;
  readonly hostsSigningSeedFile: string;
  readonly hostsAccount: string;
  /** The JWT of the account HOSTS. */
  readonly hostsAccountFile: string;
  readonly logFile: string;
  /** Kills the server, as a crash would. `restart` starts it again. */
  kill9(): Promise<void>;
  pause(): void;
  resume(): void;
}

export interface NatsConfiguration {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly storeDir: string;
  /** Folder in which the server stores account JWTs. */
  readonly accountsDir: string;
  readonly identity: NatsIdentity;
  /** Additional lines of the configuration file. */
  readonly more?: readonly string[];
}

/** The text of a nats-server configuration file. */
export const natsConfiguration = (configuration: NatsConfiguration): string =>
  [
    `server_name: ${configuration.name}`,
    `listen: "${configuration.address}:${configuration.port}"`,
    'jetstream {',
    `  store_dir: ${JSON.stringify(configuration.storeDir)}`,
    // With the default of two minutes, a power failure loses acknowledged writes.
    '  sync_interval: always',
    '}',
    ...(configuration.more ?? []),
    ...accountsConfiguration(configuration.identity, configuration.accountsDir),
    '',
  ].join('\n');

/**
 * True if the server is ready. It sends an INFO line to each new client, and does not listen before
 * JetStream is ready.
 */
async function natsAnswers(port: number, signal: AbortSignal): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' });
  try {
    return await natsGreets(socket, signal);
  } finally {
    socket.destroy();
  }
}

export async function natsGreets(socket: Socket, signal: AbortSignal): Promise<boolean> {
  const [greeting] = (await once(socket, 'data', { signal })) as [Buffer];
  return greeting.toString().startsWith('INFO ');
}

export interface NatsLaunch {
  readonly name: string;
  readonly tool: ServerTool;
  /** Holds the configuration and the log. */
  readonly folder: string;
  readonly configuration: string;
  /** Command prefix that runs the server, such as one that enters a network namespace. */
  readonly enter?: readonly string[];
  /** Address on which it listens to clients. */
  readonly port: number;
  readonly ready: (signal: AbortSignal) => Promise<boolean>;
  /** Aborting cancels the start. */
  readonly signal?: AbortSignal;
}

export const natsLogFile = (folder: string): string => join(folder, 'nats-server.log');

export async function launchNats(launch: NatsLaunch): Promise<Server> {
  const { folder, tool } = launch;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const configFile = join(folder, 'nats-server.conf');
  writePrivateFile(configFile, launch.configuration);
  const [command = tool.path, ...args] = [...(launch.enter ?? []), tool.path, '--config', configFile];
  return startServer({
    name: launch.name,
    command,
    args,
    env: tool.env,
    cwd: folder,
    logFile: natsLogFile(folder),
    port: launch.port,
    ready: launch.ready,
    readyDeadlineMs: 30_000,
    stopGraceMs: 10_000,
    ...(launch.signal === undefined ? {} : { signal: launch.signal }),
  });
}

/** Controls of a running server; `server` returns the current one. */
export const natsControls = (server: () => Server) => ({
  server,
  stop: async (): Promise<void> => void (await server().stop()),
  kill9: async (): Promise<void> => void (await server().kill9()),
  pause: (): void => server().pause(),
  resume: (): void => server().resume(),
});

export async function startNats(options: NatsOptions): Promise<Nats> {
  const { dir } = options;
  const tool = options.tool ?? (await toolHere('nats-server'));
  const identity = await prepareNatsIdentity(join(dir, 'keys'));

  const launch = async (port: number, called?: AbortSignal): Promise<Server> =>
    launchNats({
      name: 'nats-server',
      tool,
      folder: dir,
      configuration: natsConfiguration({
        name: 'longshore',
        address: '127.0.0.1',
        port,
        storeDir: join(dir, 'jetstream'),
        accountsDir: join(dir, 'accounts'),
        identity,
        ...(options.more === undefined ? {} : { more: options.more() }),
      }),
      port,
      ready: (signal) => natsAnswers(port, signal),
      ...(called === undefined ? {} : { signal: called }),
    });
  let started: { port: number; server: Server };
  const launchAt = async (port: number, signal?: AbortSignal): Promise<typeof started> => ({
    port,
    server: await launch(port, signal),
  });
  started = options.port === undefined ? await onFreePort(launchAt) : await launchAt(options.port);
  const { port } = started;
  const controls = natsControls(() => started.server);
  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    credsFile: identity.cpCredsFile,
    gatewayCredsFile: identity.gatewayCredsFile,
    actorsCredsFile: identity.actorsCredsFile,
    sysCredsFile: identity.sysCredsFile,
    operatorSigningSeedFile: identity.operatorSigningSeedFile,
    hostsSigningSeedFile: identity.hostsSigningSeedFile,
    hostsAccount: identity.hostsAccount,
    hostsAccountFile: identity.hostsAccountFile,
    logFile: started.server.logFile,
    ...controls,
    restart: async (signal) => {
      await controls.stop();
      started = await launchAt(port, signal);
    },
  };
}
