/** A real HAProxy with the configuration of deploy/haproxy/, in front of gateways. */
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import type { Test } from 'tap';
import { repositoryRoot } from '../../../dev/paths.ts';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { onFreePort, startServer } from '../../../dev/process/process.ts';
import { temporaryFolder } from '../../support/folder.ts';

const folderOfSample = join(repositoryRoot, 'deploy/haproxy');
export const sample = readFileSync(join(folderOfSample, 'haproxy.cfg'), 'utf8').replaceAll(
  '/etc/haproxy/longshore',
  join(folderOfSample, 'errors'),
);

export function replaced(text: string, pairs: readonly (readonly [from: string, to: string])[]): string {
  return pairs.reduce((given, [from, to]) => {
    if (!given.includes(from)) throw new Error(`not in the sample: ${from}`);
    return given.replace(from, to);
  }, text);
}

/** Its user and group may not be here; only root can become another. */
export const unprivileged = (chroot: string): readonly (readonly [from: string, to: string])[] =>
  process.getuid?.() === 0
    ? [
        ['  user haproxy\n', '  uid 65534\n'],
        ['  group haproxy\n', '  gid 65534\n'],
        ['/var/lib/haproxy', chroot],
      ]
    : [
        ['  user haproxy\n', ''],
        ['  group haproxy\n', ''],
        ['  chroot /var/lib/haproxy\n', ''],
      ];

export interface Proxy {
  readonly url: string;
  readonly pid: number;
  readonly logFile: string;
  readonly chroot: string;
}

/** True if the port speaks TLS, with any certificate. */
async function greets(port: number, signal: AbortSignal): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  try {
    await once(socket, 'secureConnect', { signal });
    return true;
  } finally {
    socket.destroy();
  }
}

export interface ProxyOptions {
  /** Changes of the sample, besides. */
  readonly changes?: readonly (readonly [from: string, to: string])[];
  /**
   * Certificate and key; then it runs as systemd runs it, and SIGUSR2 reloads it. Absent: no TLS.
   */
  readonly certificateFile?: string;
}

/**
 * Starts it with shorter time-outs.
 * @param server `host:port` of a gateway
 */
export async function startProxy(
  t: Test,
  server: string,
  { changes = [], certificateFile }: ProxyOptions = {},
): Promise<Proxy> {
  const hasTls = certificateFile !== undefined;
  const folder = temporaryFolder(t);
  const chroot = join(folder, 'empty');
  mkdirSync(chroot);
  chmodSync(folder, 0o755);
  const tool = await toolHere('haproxy');
  const logFile = join(folder, 'haproxy.log');
  const running = await onFreePort(async (port) => {
    const file = join(folder, 'haproxy.cfg');
    const text = replaced(sample, [
      ['maxconn 20000', 'maxconn 1000'],
      ['timeout http-request 10s', 'timeout http-request 1s'],
      [
        'bind :443 ssl crt /etc/haproxy/api.pem alpn h2,http/1.1',
        `bind 127.0.0.1:${port}${hasTls ? ` ssl crt ${certificateFile}` : ''}`,
      ],
      ['server g1 10.0.0.11:8080', `server g1 ${server}`],
      ['  server g2 10.0.0.12:8080\n', ''],
      ...unprivileged(chroot),
      ...changes,
    ]);
    writeFileSync(file, text);
    const url = `${hasTls ? 'https' : 'http'}://127.0.0.1:${port}`;
    const started = await startServer({
      name: 'haproxy',
      command: tool.path,
      args: [hasTls ? '-W' : '-db', '-f', file],
      env: { ...process.env, ...tool.env },
      cwd: folder,
      logFile,
      ready: async (signal) =>
        hasTls ? greets(port, signal) : (await fetch(`${url}/readyz`, { signal })).status !== 0,
      readyDeadlineMs: 30_000,
      stopGraceMs: 1_000,
    });
    return { ...started, url };
  });
  t.teardown(() => running.stop());
  return { url: running.url, pid: running.pid, logFile, chroot };
}
