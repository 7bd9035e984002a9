/** Squid accepts the sample proxy for engines (deploy/squid/), which allows only registries. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { repositoryRoot, shortTemporaryRoot } from '../../../dev/paths.ts';
import { freePort, startServer } from '../../../dev/process/process.ts';
import { run } from '../../../dev/process/run.ts';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { skipWithoutTools } from '../../support/tools.ts';

t.setTimeout(120_000);
const skip = await skipWithoutTools('squid');
const sample = readFileSync(join(repositoryRoot, 'deploy/squid/squid.conf'), 'utf8');

/** Starts a server that accepts connections and closes them. */
async function startPeer(t: Test): Promise<number> {
  const server = createServer((socket) => socket.on('error', () => undefined).end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** The status of the proxy's answer to CONNECT. */
const statusOf = (port: number, target: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const socket: Socket = connect(port, '127.0.0.1', () =>
      socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`),
    );
    socket.setTimeout(60_000, () => socket.destroy(new Error('no answer')));
    socket.once('error', reject);
    socket.once('data', (chunk) => {
      resolve(Number(/^HTTP\/1\.\d (\d{3})/.exec(chunk.toString('latin1'))?.[1]));
      socket.destroy();
    });
  });

t.test('squid lets engines reach only registries', { skip }, async (t) => {
  // Root's squid switches to another user, who cannot enter the temporary folder of a test.
  const folder = mkdtempSync(join(shortTemporaryRoot(), 'longshore-squid-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o777);
  const squid = await toolHere('squid');
  const [port, peer] = [await freePort(), await startPeer(t)];
  const prefix = squid.path.replace(/\/usr\/sbin\/squid$/, '');
  const hosts = join(folder, 'hosts');
  const names = [
    '127.0.0.1 localhost registry.corp.example',
    '10.0.0.5 inside.docker.io',
    '169.254.169.254 meta.quay.io',
    '192.0.2.7 public.example',
  ];
  writeFileSync(hosts, `${names.join('\n')}\n`);
  const config = join(folder, 'squid.conf');
  const shared = `${prefix}/usr/share/squid`;
  const testSettings = [
    `mime_table ${shared}/mime.conf`,
    `icon_directory ${shared}/icons`,
    `error_directory ${shared}/errors/en`,
    `unlinkd_program ${prefix}/usr/lib/squid/unlinkd`,
    `cache_log ${join(folder, 'cache.log')}`,
    `hosts_file ${hosts}`,
    'pinger_enable off',
    'netdb_filename none',
    'pid_filename none',
    'dns_nameservers 127.0.0.1',
    'shutdown_lifetime 1 seconds',
  ];
  writeFileSync(
    config,
    [
      ...testSettings,
      sample
        .replace(/^http_port .*$/m, `http_port 127.0.0.1:${port}`)
        .replace(/^access_log .*$/m, 'access_log none')
        .replace('#acl own dstdomain', 'acl own dstdomain')
        .replace('#acl own_port port 5000', `acl own_port port ${peer}`)
        .replace('#http_access', 'http_access'),
    ].join('\n'),
  );

  const parsed = await run(squid.path, ['-k', 'parse', '-f', config], { deadlineMs: 30_000, env: squid.env });
  t.equal(parsed.code, 0);
  t.notMatch(parsed.stderr, /WARNING|ERROR|FATAL/, 'squid accepts the sample without warnings');

  const server = await startServer({
    name: 'squid',
    command: squid.path,
    args: ['-N', '-f', config],
    env: squid.env,
    cwd: folder,
    logFile: join(folder, 'squid.log'),
    ready: () => statusOf(port, '127.0.0.1:1').then((status) => status === 403),
    readyDeadlineMs: 60_000,
    stopGraceMs: 10_000,
  });
  t.teardown(() => server.stop());
  for (const [target, status] of [
    ['inside.docker.io:443', 403],
    ['meta.quay.io:443', 403],
    [`127.0.0.1:${peer}`, 403],
    ['[::1]:443', 403],
    ['[::ffff:127.0.0.1]:443', 403],
    ['169.254.169.254:443', 403],
    [`localhost:${peer}`, 403],
    ['public.example:443', 403],
    ['192.0.2.7:443', 403],
    ['registry.corp.example:22', 403],
    [`registry.corp.example:${peer}`, 200],
  ] as const) {
    t.equal(await statusOf(port, target), status, target.replace(String(peer), 'port'));
  }
});
