/** The cluster to back up or restore, and the connection to it. */
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { messageOf } from '../../lib/error-message.ts';
import { natsServers, optionalText, readSettings } from '../../lib/config.ts';
import { credentialsFile } from '../../lib/nats/connection.ts';
import { limits } from '../../schemas/limits.ts';
import { BackupError } from './error.ts';

export const settings = {
  NATS_URLS: natsServers('NATS servers. Default in a checkout: the server of `npm start`.', []),
  NATS_CREDS_FILE: optionalText('Credentials of the user with all rights in the account CP: `cp.creds`.'),
  NATS_CA_FILE: optionalText('Certificate authority of the NATS servers. If set, TLS is required.'),
};

export interface Target {
  readonly servers: readonly string[];
  readonly credsFile: string | undefined;
  readonly tlsCaFile: string | undefined;
  release(): Promise<void>;
}

/** Finds the cluster where the environment names none. */
export type FindTarget = (env: NodeJS.ProcessEnv) => Promise<Target>;

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Calls `work` with a connection to NATS and closes it afterwards. The connection does not
 * reconnect, and a signal closes it: in both cases the requests of `work` fail.
 */
export async function withTarget<T>(
  env: NodeJS.ProcessEnv,
  findOther: FindTarget | undefined,
  work: (nc: NatsConnection) => Promise<T>,
): Promise<T> {
  const target = await targetOf(env, findOther);
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
    throw new BackupError(`cannot connect to NATS at ${servers.join(', ')}: ${messageOf(error)}`, error);
  }
}

async function targetOf(env: NodeJS.ProcessEnv, findOther: FindTarget | undefined): Promise<Target> {
  const { NATS_URLS: servers, NATS_CREDS_FILE: credsFile, NATS_CA_FILE: tlsCaFile } = readSettings(settings, env);
  if (servers.length > 0) return { servers, credsFile, tlsCaFile, release: async () => {} };
  if (findOther !== undefined) return findOther(env);
  throw new BackupError('NATS_URLS is missing: it names the NATS servers of the cluster (docs/backup.md)');
}
