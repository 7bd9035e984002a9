/** A Redis on loopback: shared memory for rate limits and revocations, so nothing of it is kept on disk. */
import { connect } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { onFreePort, startRestartable, startServer, type Restartable } from './process.ts';
import { toolHere, type ServerTool } from './tools.ts';

export interface RedisOptions {
  readonly tool?: ServerTool;
  readonly folder: string;
  readonly port?: number;
}

export interface Redis extends Restartable {
  readonly url: string;
  readonly port: number;
}

/** PING over the wire (RESP). */
export async function redisAnswers(port: number, signal: AbortSignal): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' });
  try {
    socket.write('PING\r\n');
    const [answer] = (await once(socket, 'data', { signal })) as [Buffer];
    return answer.toString().startsWith('+PONG');
  } finally {
    socket.destroy();
  }
}

export async function startRedis(options: RedisOptions): Promise<Redis> {
  const tool = options.tool ?? (await toolHere('redis-server'));
  const start = async (port: number): Promise<Redis> => {
    const restartable = await startRestartable((signal) =>
      startServer({
        name: 'redis-server',
        command: tool.path,
        args: ['--bind', '127.0.0.1', '--port', String(port), '--save', '', '--appendonly', 'no', '--daemonize', 'no'],
        env: tool.env,
        cwd: options.folder,
        logFile: join(options.folder, 'redis.log'),
        ready: (until) => redisAnswers(port, until),
        readyDeadlineMs: 10_000,
        stopGraceMs: 5_000,
        ...(signal === undefined ? {} : { signal }),
      }),
    );
    return { url: `redis://127.0.0.1:${port}`, port, ...restartable };
  };
  return options.port === undefined ? onFreePort(start) : start(options.port);
}
