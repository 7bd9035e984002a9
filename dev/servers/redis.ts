/**
 * Runs a Redis on loopback. It holds only what gateways share in memory, so nothing is written to
 * disk. Its one user has a password and may do what a gateway does and nothing else; docs/deploy.md
 * shows the same user.
 */
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { writePrivateFile } from '../../lib/process/private-file.ts';
import { onFreePort, startRestartable, startServer, type Restartable } from '../process/process.ts';
import { toolHere, type ServerTool } from '../fetch/tools.ts';

export interface RedisOptions {
  readonly tool?: ServerTool;
  readonly folder: string;
  readonly port?: number;
  /**
   * Configuration lines that make Redis listen, in place of plain TCP on the port; used for TLS.
   */
  readonly listen?: (port: number) => readonly string[];
}

export interface Redis extends Restartable {
  readonly url: string;
  readonly port: number;
  readonly password: string;
  /** The gateway settings that point to this Redis. */
  readonly settings: Readonly<Record<'REDIS_URL' | 'REDIS_USERNAME' | 'REDIS_PASSWORD_FILE', string>>;
}

const username = 'gateway';

/**
 * A gateway uses expiring counters, publish/subscribe, and INFO to check whether Redis is ready.
 */
export const gatewayUser = (password: string): string =>
  `user ${username} on >${password} resetkeys ~longshore:* resetchannels &longshore.* -@all +incrby +expire +publish +subscribe +info`;

const plainPort = (port: number): readonly string[] => [`port ${port}`];

/**
 * The password goes into a file, because every user of the machine can read a program's arguments.
 */
const configuration = (listen: readonly string[], password: string): string =>
  [
    'bind 127.0.0.1',
    ...listen,
    'save ""',
    'appendonly no',
    'daemonize no',
    'user default off',
    gatewayUser(password),
    '',
  ].join('\n');

/**
 * True if Redis answers. A client that has not authenticated gets the error NOAUTH, which is enough
 * to know that it is up.
 */
async function redisAnswers(port: number, signal: AbortSignal): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' });
  try {
    socket.write('PING\r\n');
    const [answer] = (await once(socket, 'data', { signal })) as [Buffer];
    return answer.toString().startsWith('-NOAUTH');
  } finally {
    socket.destroy();
  }
}

/**
 * True if the port accepts connections. With TLS no more can be checked without a client
 * certificate.
 */
async function redisListens(port: number, signal: AbortSignal): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' });
  try {
    await once(socket, 'connect', { signal });
    return true;
  } finally {
    socket.destroy();
  }
}

export async function startRedis(options: RedisOptions): Promise<Redis> {
  const { folder, listen } = options;
  const tool = options.tool ?? (await toolHere('redis-server'));
  const password = randomBytes(24).toString('base64url');
  const passwordFile = join(folder, 'password');
  writePrivateFile(passwordFile, `${password}\n`);
  const configFile = join(folder, 'redis.conf');
  const start = async (port: number): Promise<Redis> => {
    writePrivateFile(configFile, configuration((listen ?? plainPort)(port), password));
    const restartable = await startRestartable((signal) =>
      startServer({
        name: 'redis-server',
        command: tool.path,
        args: [configFile],
        env: tool.env,
        cwd: folder,
        logFile: join(folder, 'redis.log'),
        port,
        ready: (until) => (listen === undefined ? redisAnswers(port, until) : redisListens(port, until)),
        readyDeadlineMs: 10_000,
        stopGraceMs: 5_000,
        ...(signal === undefined ? {} : { signal }),
      }),
    );
    const url = `${listen === undefined ? 'redis' : 'rediss'}://127.0.0.1:${port}`;
    return {
      url,
      port,
      password,
      settings: { REDIS_URL: url, REDIS_USERNAME: username, REDIS_PASSWORD_FILE: passwordFile },
      ...restartable,
    };
  };
  return options.port === undefined ? onFreePort(start) : start(options.port);
}
