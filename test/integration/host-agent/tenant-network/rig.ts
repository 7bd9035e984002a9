/**
 * A host with the program of the tenant network and, in place of an engine's sandboxes, network
 * namespaces that look like them: IPv6 is off, and there is no other interface. In each lives a
 * process that connects and listens as it is told.
 */
import { fork, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { toolHere } from '../../../../dev/fetch/tools.ts';
import { enter, strike } from '../../../../dev/process/ledger.ts';
import { removeNamespace } from '../../../../dev/process/reap.ts';
import { run } from '../../../../dev/process/run.ts';
import { repositoryRoot } from '../../../../dev/paths.ts';
import { pathWith } from '../../../../dev/fetch/wrappers.ts';
import type { Attachment, DesiredNetwork, NetworkState, ServedPeers } from '../../../../schemas/wire/net.ts';
import type { ContainerId, TenantId } from '../../../../schemas/ids.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { until } from '../../../support/until.ts';
import type { Order } from './inside.ts';

const deadlineMs = 20_000;
const ranges = { ipv4: '10.200.0.0/16', ipv6: 'fd5e:1:2::/48' };

export interface Sandbox {
  readonly file: string;
  /** Runs a command in it, as root. */
  must(...command: readonly string[]): Promise<string>;
  /** `ok`, or the code of the error. */
  connect(address: string, port: number, from?: string): Promise<string>;
  /** What came on this UDP port until now. */
  heard(port: number): Promise<string[]>;
  /** Answers TCP, and hears UDP, on all addresses. */
  listen(port: number): Promise<void>;
  send(address: string, port: number, text: string, from?: string): Promise<string>;
  /** Whether an echo comes back. */
  ping(address: string): Promise<boolean>;
  /** How many of so many echoes come back, twenty a second. */
  pings(address: string, count: number): Promise<number>;
}

export interface Rig {
  readonly router: string;
  /** The folder that the resolvers read. */
  readonly names: string;
  sandbox(): Promise<Sandbox>;
  /** Desires these attached, and returns what the program says of each. */
  desire(...attached: readonly Attachment[]): Promise<Record<string, string | null>>;
  /** Desires this, and nothing else. */
  want(desired: Partial<DesiredNetwork>): Promise<NetworkState>;
  /** What `GET /peers` answers. */
  peers(): Promise<ServedPeers>;
  put(body: string): Promise<{ readonly status: number; readonly body: string }>;
  inRouter(...command: readonly string[]): Promise<string>;
  /** A device outside, with a WireGuard configuration as `wg setconf` reads it. */
  device(configuration: string, addresses: readonly string[], routes: readonly string[]): Promise<Sandbox>;
  kill(): Promise<void>;
  start(): Promise<void>;
}

/** The container number `at`, with its addresses. */
export const attachment = (sandbox: Sandbox, tenant: string, at: number, run = 'first'): Attachment => ({
  id: `00000000-0000-7000-8000-${String(at).padStart(12, '0')}` as ContainerId,
  tenant: tenant as TenantId,
  namespace: sandbox.file,
  run,
  ipv4: `10.200.0.${at}`,
  ipv6: `fd5e:1:2::${at}`,
});

/** It is removed after the test, and also after one that was killed. */
function ownNamespace(t: Test, name: string): void {
  enter({ kind: 'namespace', id: name, name });
  t.teardown(async () => {
    await removeNamespace(name);
    strike(name);
  });
}

export async function startRig(t: Test): Promise<Rig> {
  const folder = temporaryFolder(t);
  const ping = await toolHere('ping');
  const tools = {
    nft: await toolHere('nft'),
    wg: await toolHere('wg'),
    'wireguard-go': await toolHere('wireguard-go'),
  };
  const env = { ...process.env, PATH: pathWith(join(folder, 'bin'), tools, process.env['PATH'] ?? '') };
  const router = `lsr-${randomBytes(4).toString('hex')}`;
  const must = async (command: string, ...args: readonly string[]): Promise<string> => {
    const ran = await run(command, args, { deadlineMs, env });
    if (ran.code !== 0) throw new Error(`${command} ${args.join(' ')}: ${ran.stderr}`);
    return ran.stdout;
  };
  ownNamespace(t, router);

  const names = join(folder, 'names');
  let program: ChildProcess | undefined;
  const socket = join(folder, 'net.sock');
  const ask = (method: string, path: string, body = ''): Promise<{ status: number; body: string }> =>
    new Promise((resolve, reject) => {
      const asking = request({ socketPath: socket, path, method }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => (text += part));
        response.once('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
      });
      asking.once('error', reject);
      asking.end(body);
    });
  const put = (body: string) => ask('PUT', '/network', body);
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const ending = program;
    program = undefined;
    if (ending === undefined || ending.exitCode !== null || ending.signalCode !== null) return;
    const ended = new Promise((resolve) => ending.once('exit', resolve));
    ending.kill(signal);
    await ended;
  };
  const start = async (): Promise<void> => {
    const main = join(repositoryRoot, 'dist/host-agent/tenant-network/main.js');
    program = spawn(process.execPath, ['--enable-source-maps', main], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: {
        ...env,
        NET_SOCKET: socket,
        NET_STATE_DIR: folder,
        NET_NAMES_DIR: names,
        NET_ROUTER: router,
        NET_NAMESPACES: '/run/netns',
        NET_INTERVAL: '1s',
        LOG_LEVEL: 'error',
      },
    });
    await until('the program listens', async () => (await put('{}')).status === 400);
  };
  t.teardown(() => end('SIGTERM'));
  await start();

  const pings = async (namespace: string, address: string, count: number): Promise<number> => {
    const args = ['netns', 'exec', namespace, ping.path, '-n', '-i', '0.05', '-c', String(count), '-W', '2', address];
    const ran = await run('ip', args, { deadlineMs, env: { ...env, ...ping.env } });
    return Number(/ (\d+) received/.exec(ran.stdout)?.[1] ?? 0);
  };

  const sandbox = async (): Promise<Sandbox> => {
    const name = `lss-${randomBytes(4).toString('hex')}`;
    ownNamespace(t, name);
    await must('ip', 'netns', 'add', name);
    const inside = (...command: readonly string[]) => must('ip', 'netns', 'exec', name, ...command);
    const off = ['lo', 'default'].map((on) => `echo 1 > /proc/sys/net/ipv6/conf/${on}/disable_ipv6`);
    await inside('sh', '-c', [...off, 'ip link set lo up'].join(' && '));
    const child = fork(join(import.meta.dirname, 'inside.js'), [], {
      execPath: 'ip',
      execArgv: ['netns', 'exec', name, process.execPath],
    });
    t.teardown(() => child.kill('SIGKILL'));
    let asked = 0;
    const ask = <T>(order: Order): Promise<T> =>
      new Promise((resolve) => {
        const number = ++asked;
        const hear = (answer: { readonly number: number; readonly value: T }): void => {
          if (answer.number !== number) return;
          child.off('message', hear);
          resolve(answer.value);
        };
        child.on('message', hear);
        child.send({ number, order });
      });
    return {
      file: `/run/netns/${name}`,
      must: inside,
      connect: (address, port, from) => ask({ kind: 'connect', address, port, from }),
      heard: (port) => ask({ kind: 'heard', port }),
      listen: (port) => ask({ kind: 'listen', port }),
      send: (address, port, text, from) => ask({ kind: 'send', address, port, text, from }),
      ping: async (address) => (await pings(name, address, 1)) === 1,
      pings: (address, count) => pings(name, address, count),
    };
  };
  const device: Rig['device'] = async (configuration, addresses, routes) => {
    const made = await sandbox();
    const link = `lsd-${randomBytes(4).toString('hex')}`;
    const file = join(folder, `${link}.conf`);
    writeFileSync(file, configuration, { mode: 0o600 });
    const script = [
      'echo 0 > /proc/sys/net/ipv6/conf/all/disable_ipv6',
      `wg setconf ${link} ${file}`,
      ...addresses.map((address) => `ip address add ${address} dev ${link} nodad`),
      `ip link set ${link} mtu 1420 up`,
      ...routes.map((route) => `ip route add ${route} dev ${link}`),
    ];
    // Its socket stays where it was made.
    await must('env', '-u', 'LOG_LEVEL', 'wireguard-go', link);
    await until('wireguard-go answers', async () => (await run('wg', ['show', link], { deadlineMs, env })).code === 0);
    await must('ip', 'link', 'set', link, 'netns', made.file);
    await made.must('sh', '-c', script.join(' && '));
    return made;
  };
  const want: Rig['want'] = async (desired) => {
    const nothing: DesiredNetwork = {
      v: 1,
      owner: 'h1',
      ranges,
      mtu: 1420,
      attached: [],
      members: [],
      vpn: [],
      mesh: null,
    };
    const { status, body } = await put(JSON.stringify({ ...nothing, ...desired }));
    if (status !== 200) throw new Error(`${status} ${body}`);
    return JSON.parse(body) as NetworkState;
  };
  return {
    router,
    names,
    sandbox,
    device,
    put,
    peers: async () => JSON.parse((await ask('GET', '/peers')).body) as ServedPeers,
    start,
    kill: () => end('SIGKILL'),
    want,
    desire: async (...attached) => (await want({ attached: [...attached] })).attached,
    inRouter: (...command) => must('ip', 'netns', 'exec', router, ...command),
  };
}
