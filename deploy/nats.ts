/** A nats-server with JetStream on loopback, with the accounts of nats-identity.ts. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:net';
import { once } from 'node:events';
import { prepareNatsIdentity, writePrivateFile, type NatsIdentity } from './nats-identity.ts';
import { onFreePort, startServer, type Server } from './process.ts';
import { toolHere, type ServerTool } from './tools.ts';

export { mintHostUserJwt, type HostUser } from './nats-identity.ts';

export interface NatsOptions {
  readonly tool?: ServerTool;
  /** Keys, configuration, streams and log: a second start with the same folder is the same server. */
  readonly dir: string;
  readonly port?: number;
}

export interface Nats {
  readonly url: string;
  readonly port: number;
  /** Credentials of the control plane's user. */
  readonly credsFile: string;
  readonly sysCredsFile: string;
  readonly hostsSigningSeedFile: string;
  readonly hostsAccount: string;
  readonly logFile: string;
  /** The running server; another after a restart. */
  server(): Server;
  stop(): Promise<void>;
  /** As a crash. `restart` brings it back. */
  kill9(): Promise<void>;
  pause(): void;
  resume(): void;
  /** Stops it where it runs, and starts it on the same port with the same folder. */
  restart(): Promise<void>;
}

/** Who may connect, as lines of a nats-server's configuration. */
export const accountsConfiguration = (identity: NatsIdentity): string[] => [
  `operator: "${identity.operatorJwt}"`,
  `system_account: ${identity.systemAccount}`,
  'resolver: MEMORY',
  'resolver_preload: {',
  ...Object.entries(identity.accountJwts).map(([key, jwt]) => `  ${key}: "${jwt}"`),
  '}',
];

/** The text of a nats-server configuration file. */
export const natsConfiguration = (identity: NatsIdentity, folder: string, port: number): string =>
  [
    'server_name: longshore',
    `listen: "127.0.0.1:${port}"`,
    'jetstream {',
    `  store_dir: ${JSON.stringify(join(folder, 'jetstream'))}`,
    // The default of two minutes loses acknowledged writes when the machine goes down.
    '  sync_interval: always',
    '}',
    ...accountsConfiguration(identity),
    '',
  ].join('\n');

/** The server greets whoever connects with an INFO line; before JetStream is ready it does not listen. */
async function natsAnswers(port: number, signal: AbortSignal): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' });
  try {
    const [greeting] = (await once(socket, 'data', { signal })) as [Buffer];
    return greeting.toString().startsWith('INFO ');
  } finally {
    socket.destroy();
  }
}

export async function startNats(options: NatsOptions): Promise<Nats> {
  const { dir } = options;
  const tool = options.tool ?? (await toolHere('nats-server'));
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const identity = await prepareNatsIdentity(join(dir, 'keys'));
  const configFile = join(dir, 'nats-server.conf');

  const launch = async (port: number): Promise<Server> => {
    writePrivateFile(configFile, natsConfiguration(identity, dir, port));
    return startServer({
      name: 'nats-server',
      command: tool.path,
      args: ['--config', configFile],
      env: tool.env,
      cwd: dir,
      logFile: join(dir, 'nats-server.log'),
      ready: (signal) => natsAnswers(port, signal),
      readyDeadlineMs: 30_000,
      stopGraceMs: 10_000,
    });
  };
  let started: { port: number; server: Server };
  const launchAt = async (port: number): Promise<typeof started> => ({ port, server: await launch(port) });
  started = options.port === undefined ? await onFreePort(launchAt) : await launchAt(options.port);
  const { port } = started;
  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    credsFile: identity.cpCredsFile,
    sysCredsFile: identity.sysCredsFile,
    hostsSigningSeedFile: identity.hostsSigningSeedFile,
    hostsAccount: identity.hostsAccount,
    logFile: started.server.logFile,
    server: () => started.server,
    stop: async () => void (await started.server.stop()),
    kill9: async () => void (await started.server.kill9()),
    pause: () => started.server.pause(),
    resume: () => started.server.resume(),
    restart: async () => {
      await started.server.stop();
      started = await launchAt(port);
    },
  };
}
