/**
 * Two machines on a wire, for real handshakes: two network namespaces and a veth pair, the client's default route through
 * the server. The namespaces have no names and no files: each is held by a process, lives as long as somebody is in it, and
 * goes with its interfaces and mounts when the ledger has ended the processes, however the test ended. So nothing of one
 * run can meet another's.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Test } from 'tap';
import { enter, markVariable, strike } from '../../../deploy/ledger.ts';
import { shortTemporaryRoot } from '../../../deploy/paths.ts';
import { startServer, type Server } from '../../../deploy/process.ts';
import { run, type Ran } from '../../../deploy/run.ts';
import type { ToolName } from '../../../deploy/tool-table.ts';
import { toolHere, type Tool } from '../../../deploy/tools.ts';
import { inCi, skipWithoutTools } from '../../support/tools.ts';

const setupDeadlineMs = 10_000;
const commandDeadlineMs = 30_000;
const stopGraceMs = 2_000;

/** Of the wire (ranges for documentation, RFC 5737 and RFC 3849). */
export const wire = {
  server: { ipv4: '198.51.100.1', ipv6: '2001:db8:51::1' },
  client: { ipv4: '198.51.100.2', ipv6: '2001:db8:51::2' },
} as const;
export type Side = keyof typeof wire;

export interface Daemon {
  readonly name: string;
  readonly command: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly ready: (signal: AbortSignal) => Promise<boolean>;
  readonly readyDeadlineMs: number;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly deadlineMs?: number;
}

/** A machine of the two. */
export interface Namespace {
  readonly side: Side;
  /** Its own, and also where its /run is not the system's; commands run here. */
  readonly folder: string;
  /** Programs found before all others. */
  readonly programs: string;
  run(command: string, args: readonly string[], options?: RunOptions): Promise<Ran>;
  /** As `run`; a failure is an error that holds what the command said. */
  must(command: string, args: readonly string[], options?: RunOptions): Promise<Ran>;
  start(daemon: Daemon): Promise<Server>;
  /** Whether an answer comes, to one of the packets that are sent until then or until the end of the wait. */
  ping(address: string, waitS: number): Promise<boolean>;
}

export type Network = Readonly<Record<Side, Namespace>>;

/** Why a test in such a network must be skipped here; false where it can run, or must fail. */
export async function skipWithoutNetwork(...needed: readonly ToolName[]): Promise<string | false> {
  if (inCi) return false;
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'network namespaces need Linux and root';
  if (!existsSync('/dev/net/tun')) return 'there is no /dev/net/tun';
  return skipWithoutTools('ip', 'ping', ...needed);
}

/** One environment for several tools: what each brings along first, what all have alike last. */
function environmentOf(tools: readonly Tool[], first: string): Record<string, string> {
  const lists = (variable: string): string[][] =>
    tools.map(({ env }) => (env[variable] ?? '').split(delimiter).filter((folder) => folder !== ''));
  const paths = lists('PATH');
  const everywhere = new Set(paths[0]?.filter((folder) => paths.every((path) => path.includes(folder))));
  const own = paths.flat().filter((folder) => !everywhere.has(folder));
  const libraries = new Set(lists('LD_LIBRARY_PATH').flat());
  return {
    PATH: [...new Set([first, ...own, ...everywhere])].join(delimiter),
    LANG: 'C',
    LC_ALL: 'C',
    ...(libraries.size === 0 ? {} : { LD_LIBRARY_PATH: [...libraries].join(delimiter) }),
    ...Object.assign({}, ...tools.map(({ env }) => pick(env, 'XTABLES_LIBDIR'))),
  };
}

const pick = (env: NodeJS.ProcessEnv, name: string): Record<string, string> =>
  env[name] === undefined ? {} : { [name]: env[name] };

/**
 * strongSwan looks for its plugins in a folder whose name is compiled in. Where it was unpacked and not installed, that
 * folder is shown in the namespace, by a mount that nobody else sees.
 */
function mountOf({ name, origin, path }: Tool): string[] {
  if (name !== 'swanctl' || (origin !== 'cache' && origin !== 'fetched')) return [];
  const prefix = path.replace(/\/usr\/sbin\/swanctl$/, '');
  return [`mount -t overlay longshore -o 'lowerdir=${prefix}/usr/lib:/usr/lib,ro' /usr/lib`];
}

async function createNamespace(t: Test, side: Side, folder: string, tools: readonly Tool[]): Promise<Holder> {
  mkdirSync(folder);
  const programs = join(folder, 'bin');
  mkdirSync(programs);
  const env = environmentOf(tools, programs);
  const marker = join(folder, 'set-up');
  const script = [
    'set -e',
    // Sockets and pid files of the daemons.
    'mount -t tmpfs -o mode=755 longshore /run',
    ...tools.flatMap(mountOf),
    'ip link set dev lo up',
    `: > '${marker}'`,
    'exec sleep infinity',
  ].join('\n');
  const holder = await startServer({
    name: `${side}'s namespaces`,
    command: 'unshare',
    args: ['--net', '--mount', '--', 'sh', '-c', script],
    env,
    cwd: folder,
    logFile: join(folder, 'namespace.log'),
    ready: async () => Promise.resolve(existsSync(marker)),
    readyDeadlineMs: setupDeadlineMs,
    stopGraceMs,
  });
  // Ends also what has left us: the userspace WireGuard is a daemon, but it bears the mark.
  t.teardown(() => holder.stop());

  const entering = (command: string, args: readonly string[]): string[] => [
    ...['--target', String(holder.pid), '--net', '--mount', `--wd=${folder}`, '--', command],
    ...args,
  ];
  const runHere: Namespace['run'] = (command, args, options = {}) =>
    run('nsenter', entering(command, args), {
      deadlineMs: options.deadlineMs ?? commandDeadlineMs,
      env: { ...env, ...options.env, [markVariable]: holder.mark },
    });
  const namespace: Namespace = {
    side,
    folder,
    programs,
    run: runHere,
    must: async (command, args, options) => {
      const ran = await runHere(command, args, options);
      if (ran.code === 0) return ran;
      const how = ran.timedOut ? 'exceeded its deadline' : `ended with ${ran.code ?? ran.signal}`;
      throw new Error(`${side}: ${command} ${args.join(' ')} ${how}:\n${ran.stdout}${ran.stderr}`);
    },
    start: async (daemon) => {
      const server = await startServer({
        name: daemon.name,
        command: 'nsenter',
        args: entering(daemon.command, daemon.args ?? []),
        env: { ...env, ...daemon.env },
        cwd: folder,
        logFile: join(folder, `${daemon.name}.log`),
        ready: daemon.ready,
        readyDeadlineMs: daemon.readyDeadlineMs,
        stopGraceMs,
      });
      t.teardown(() => server.stop());
      return server;
    },
    ping: async (address, waitS) => {
      const args = ['-n', '-q', '-c', '1', '-i', '0.2', '-w', String(waitS), address];
      const ran = await runHere('ping', args, { deadlineMs: waitS * 1000 + commandDeadlineMs });
      if (ran.code === 0 || ran.code === 1) return ran.code === 0;
      // No route, or refused by the routing: no answer will come. Anything else is a fault of the rig.
      if (/unreachable|not permitted|Required key not available|Destination address required/i.test(ran.stderr))
        return false;
      throw new Error(`ping ${address} ended with ${ran.code ?? ran.signal}: ${ran.stderr}`);
    },
  };
  return { namespace, pid: holder.pid };
}

interface Holder {
  readonly namespace: Namespace;
  readonly pid: number;
}

/** Two machines that see each other, with these tools at hand. */
export async function createNetwork(t: Test, ...needed: readonly ToolName[]): Promise<Network> {
  // A socket lies in it, whose path must be short.
  const folder = mkdtempSync(join(shortTemporaryRoot(), 'longshore-vpn-'));
  enter({ kind: 'folder', id: folder, path: folder });
  t.teardown(() => {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    strike(folder);
  });
  const tools: Tool[] = [];
  for (const name of ['ip', 'ping', ...needed] as const) tools.push(await toolHere(name));
  const server = await createNamespace(t, 'server', join(folder, 'server'), tools);
  const client = await createNamespace(t, 'client', join(folder, 'client'), tools);

  const ip = async ({ namespace }: Holder, commands: readonly string[]): Promise<void> => {
    const batch = join(namespace.folder, 'ip-batch');
    writeFileSync(batch, commands.map((command) => `${command}\n`).join(''));
    await namespace.must('ip', ['-batch', batch]);
  };
  const addresses = (side: Side): string[] => [
    `address add ${wire[side].ipv4}/24 dev wire`,
    `address add ${wire[side].ipv6}/64 dev wire nodad`,
    'link set dev wire up',
  ];
  await ip(server, [`link add wire type veth peer name wire netns ${client.pid}`, ...addresses('server')]);
  await ip(client, [
    ...addresses('client'),
    `route add 0.0.0.0/0 via ${wire.server.ipv4}`,
    `route add ::/0 via ${wire.server.ipv6}`,
  ]);
  // A machine answers for each of its addresses on every interface. What is inside a tunnel must not be reached beside it.
  for (const [family, inside] of [
    ['-4', '10.0.0.0/8'],
    ['-6', 'fd00::/8'],
  ] as const) {
    for (const rule of [
      ['add', 'pref', '5', 'iif', 'wire', 'to', inside, 'blackhole'],
      ['add', 'pref', '10', 'lookup', 'local'],
      ['del', 'pref', '0'],
    ]) {
      await server.namespace.must('ip', [family, 'rule', ...rule]);
    }
  }
  for (const address of [wire.server.ipv4, wire.server.ipv6]) {
    if (!(await client.namespace.ping(address, 10))) throw new Error(`${address} can't be reached over the wire`);
  }
  return { server: server.namespace, client: client.namespace };
}
