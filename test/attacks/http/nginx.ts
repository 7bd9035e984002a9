/** A real nginx with the sample of docs/deploy.md, in front of gateways. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { repositoryRoot } from '../../../dev/paths.ts';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { onFreePort, startServer } from '../../../dev/process/process.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { replaced, type Proxy } from './haproxy.ts';

const page = readFileSync(join(repositoryRoot, 'docs/deploy.md'), 'utf8');
export const nginxSample = /^# nginx[^]*?(?=^```)/m.exec(page)?.[0] ?? '';

/** A whole configuration that writes into the folder alone, with the sample in the context http. */
export function nginxConfiguration(folder: string, sample: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const inFolder = replaced(sample, [
    ['/var/log/nginx/api.log', join(folder, 'access.log')],
    ['/var/log/nginx/api-error.log', join(folder, 'error.log')],
  ]);
  return [
    // One process, so that no other user needs the folder.
    ...['daemon off;', 'master_process off;', `pid ${folder}/pid;`, `error_log ${folder}/start.log;`, 'events {}'],
    'http {',
    ...temporary.map((name) => `${name}_temp_path ${folder}/${name};`),
    inFolder,
    '}',
    '',
  ].join('\n');
}

/**
 * Starts it without TLS.
 * @param server `host:port` of a gateway
 */
export async function startNginx(t: Test, server: string): Promise<Omit<Proxy, 'chroot'>> {
  const folder = temporaryFolder(t);
  const tool = await toolHere('nginx');
  const running = await onFreePort(async (port) => {
    const file = join(folder, 'nginx.conf');
    const sample = replaced(nginxSample, [
      ['listen 443 ssl http2;', `listen 127.0.0.1:${port};`],
      ['  ssl_certificate     /etc/nginx/api.pem;\n', ''],
      ['  ssl_certificate_key /etc/nginx/api.key;\n', ''],
      ['server 10.0.0.11:8080; server 10.0.0.12:8080;', `server ${server};`],
    ]);
    writeFileSync(file, nginxConfiguration(folder, sample));
    const url = `http://127.0.0.1:${port}`;
    const started = await startServer({
      name: 'nginx',
      command: tool.path,
      args: ['-p', folder, '-c', file],
      env: { ...process.env, ...tool.env },
      cwd: folder,
      logFile: join(folder, 'output.log'),
      ready: async (signal) => (await fetch(`${url}/readyz`, { signal })).status !== 0,
      readyDeadlineMs: 30_000,
      stopGraceMs: 1_000,
    });
    return { ...started, url };
  });
  t.teardown(() => running.stop());
  return { url: running.url, pid: running.pid, logFile: join(folder, 'access.log') };
}
