/**
 * Finds the cluster to back up or restore: the one that the environment names, or the one of
 * `npm start`. If the latter's NATS server does not run, it is started for as long as the command
 * takes.
 */
import { join } from 'node:path';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { natsServers, optionalText, readSettings } from '../../lib/config.ts';
import { credentialsFile } from '../../lib/nats/connection.ts';
import { BackupError, reasonOf } from './error.ts';
import { tryLock } from '../../dev/process/lockdir.ts';
import { prepareNatsIdentity } from '../keys/nats-identity.ts';
import { startNats } from '../../dev/servers/nats.ts';
import { stateFolder } from '../../dev/paths.ts';
import { keptPorts, readPorts } from '../../dev/stack/ports.ts';
import { limits } from '../../schemas/limits.ts';

export const settings = {
  NATS_URLS: natsServers('NATS servers. Default: the server of `npm start` on this machine.', []),
  NATS_CREDS_FILE: optionalText('Credentials of the user with all rights in the account CP: `cp.creds`.'),
  NATS_CA_FILE: optionalText('Certificate authority of the NATS servers. If set, TLS is required.'),
};

interface Target {
  readonly servers: readonly string[];
  readonly credsFile: string | undefined;
  readonly tlsCaFile: string | undefined;
  release(): Promise<void>;
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Calls `work` with a connection to NATS and closes it afterwards. The connection does not
 * reconnect, and a signal closes it: in both cases the requests of `work` fail.
 */
export async function withTarget<T>(env: NodeJS.ProcessEnv, work: (nc: NatsConnection) => Promise<T>): Promise<T> {
  const target = await findTarget(env);
  try {
    const nc = await connectTo(target);
    const onSignal = (): void => void nc.close();
    for (const signal of signals) process.on(signal, onSignal);
    try {
      return await work(nc);
    } finally {
      for (const signal of signals) process.removeListener(signal, onSignal);
      await nc.close();
    }
  } finally {
    await target.release();
  }
}

async function connectTo({ servers, credsFile, tlsCaFile }: Target): Promise<NatsConnection> {
  try {
    return await connect({
      servers: [...servers],
      name: 'longshore backup',
      reconnect: false,
      timeout: limits.natsConnectMs,
      ...(credsFile === undefined ? {} : { authenticator: credentialsFile(credsFile) }),
      ...(tlsCaFile === undefined ? {} : { tls: { caFile: tlsCaFile, handshakeFirst: true } }),
    });
  } catch (error) {
    throw new BackupError(`cannot connect to NATS at ${servers.join(', ')}: ${reasonOf(error)}`, error);
  }
}

async function findTarget(env: NodeJS.ProcessEnv): Promise<Target> {
  const { NATS_URLS: servers, NATS_CREDS_FILE: credsFile, NATS_CA_FILE: tlsCaFile } = readSettings(settings, env);
  return servers.length > 0
    ? { servers, credsFile, tlsCaFile, release: async () => {} }
    : localTarget(stateFolder(env));
}

async function localTarget(state: string): Promise<Target> {
  const folder = join(state, 'nats');
  const ports = join(state, 'ports.json');
  const lock = tryLock(join(state, 'start.lock'));
  if (lock !== undefined) {
    try {
      const nats = await startNats({ dir: folder, port: (await keptPorts(ports)).nats });
      const release = async (): Promise<void> => {
        await nats.stop();
        lock.release();
      };
      return { servers: [nats.url], credsFile: nats.credsFile, tlsCaFile: undefined, release };
    } catch (error) {
      lock.release();
      throw error;
    }
  }
  const port = readPorts(ports).nats;
  if (port === undefined)
    throw new BackupError(`${ports} has no port of NATS: wait until \`npm start\` has started NATS`);
  const { cpCredsFile: credsFile } = await prepareNatsIdentity(join(folder, 'keys'));
  return {
    servers: [`nats://127.0.0.1:${port}`],
    credsFile,
    tlsCaFile: undefined,
    release: async () => {},
  };
}
