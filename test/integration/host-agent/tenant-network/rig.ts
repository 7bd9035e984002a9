/**
 * A host with the program of the tenant network and, in place of an engine's sandboxes, network
 * namespaces that look like them: IPv6 is off, and there is no other interface. In each lives a
 * process that connects and listens on orders of the test.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { toolHere } from '../../../../dev/fetch/tools.ts';
import { run } from '../../../../dev/process/run.ts';
import { repositoryRoot } from '../../../../dev/paths.ts';
import { pathWith } from '../../../../dev/fetch/wrappers.ts';
import { makeWireguardLink } from '../../../../dev/servers/wireguard-link.ts';
import type { Attachment, DesiredNetwork, NetworkState, ServedPeers } from '../../../../schemas/wire/net.ts';
import type { ContainerId, TenantId } from '../../../../schemas/ids.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { makeSandbox, namespaceFolder, ownNamespace, startInside, type Must } from '../../../support/sandbox.ts';
import { until } from '../../../support/until.ts';
import type { Orders } from './inside.ts';

const deadlineMs = 20_000;
const ranges = { ipv4: '10.200.0.0/16', ipv6: 'fd5e:1:2::/48' };

export interface Sandbox extends Orders {
  readonly file: string;
  /** Runs a command in it, as root. */
  readonly must: Must;
  /** True if an echo comes back. */
  ping(address: string): Promise<boolean>;
  /** Number of echoes that come back of `count`, twenty a second. */
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
  /** Answer of `GET /peers`. */
  peers(): Promise<ServedPeers>;
  put(body: string): Promise<{ readonly status: number; readonly body: string }>;
  inRouter(...command: readonly string[]): Promise<string>;
  /** Packets that a counter of the rules has. */
  counted(counter: 'spoofed' | 'refused' | 'flooded' | 'misled'): Promise<number>;
  /** Starts both resolvers. */
  resolvers(): void;
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
  const must: Must = async (command = '', ...args) => {
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
        NET_NAMESPACES: namespaceFolder,
        NET_INTERVAL: '1s',
        LOG_LEVEL: 'error',
      },
    });
    await until('the program listens', async () => (await put('{}')).status === 400);
  };
  t.teardown(() => end('SIGTERM'));
  await start();
  const resolvers = (): void => {
    const main = join(repositoryRoot, 'dist/host-agent/tenant-network/names/main.js');
    for (const which of ['first', 'second']) {
      const resolver = spawn(process.execPath, ['--enable-source-maps', main], {
        stdio: ['ignore', 'ignore', 'inherit'],
        env: { ...env, DNS_RESOLVER: which, NET_NAMES_DIR: names, NET_ROUTER: router, LOG_LEVEL: 'error' },
      });
      t.teardown(() => resolver.kill('SIGTERM'));
    }
  };

  const sandbox = async (): Promise<Sandbox> => {
    const file = await makeSandbox(t, must);
    const tell = startInside<Orders>(t, file, join(import.meta.dirname, 'inside.js'));
    const pings: Sandbox['pings'] = async (address, count) => {
      const command = [ping.path, '-n', '-i', '0.05', '-c', String(count), '-W', '2', address];
      const ran = await run('nsenter', [`--net=${file}`, ...command], { deadlineMs, env: { ...env, ...ping.env } });
      return Number(/ (\d+) received/.exec(ran.stdout)?.[1] ?? 0);
    };
    return {
      file,
      must: (...command) => must('nsenter', `--net=${file}`, ...command),
      ask: (...args) => tell('ask', ...args),
      pour: (...args) => tell('pour', ...args),
      poured: () => tell('poured'),
      flood: (...args) => tell('flood', ...args),
      rest: () => tell('rest'),
      connect: (...args) => tell('connect', ...args),
      heard: (...args) => tell('heard', ...args),
      listen: (...args) => tell('listen', ...args),
      send: (...args) => tell('send', ...args),
      ping: async (address) => (await pings(address, 1)) === 1,
      pings,
    };
  };
  const device: Rig['device'] = async (configuration, addresses, routes) => {
    const made = await sandbox();
    const link = `lsd-${randomBytes(4).toString('hex')}`;
    const file = join(folder, `${link}.conf`);
    writeFileSync(file, configuration, { mode: 0o600 });
    const script = [
      'echo 0 > /proc/sys/net/ipv6/conf/all/disable_ipv6',
      ...addresses.map((address) => `ip address add ${address} dev ${link} nodad`),
      `ip link set ${link} mtu 1420 up`,
      ...routes.map((route) => `ip route add ${route} dev ${link}`),
    ];
    await makeWireguardLink(must, link, file, made.file);
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
  const inRouter: Rig['inRouter'] = (...command) => must('ip', 'netns', 'exec', router, ...command);
  return {
    router,
    names,
    resolvers,
    sandbox,
    device,
    put,
    peers: async () => JSON.parse((await ask('GET', '/peers')).body) as ServedPeers,
    start,
    kill: () => end('SIGKILL'),
    want,
    desire: async (...attached) => (await want({ attached: [...attached] })).attached,
    inRouter,
    counted: async (counter) => {
      const listed = await inRouter('nft', 'list', 'counter', 'inet', 'longshore', counter);
      return Number(/packets (\d+)/.exec(listed)?.[1]);
    },
  };
}
