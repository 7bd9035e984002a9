/**
 * A container engine: the one that answers, or a private dockerd with folders of its own. Several
 * private ones run side by side; each has its own socket, containerd, cgroup and range of
 * addresses. What they share is the machine's firewall, in which each keeps its own rules
 * (engine-firewall.ts).
 */
import { createHash, randomInt } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { within } from '../../lib/backoff.ts';
import { engineAnswers, engineGet, engineRequest, parseEngineHost, type EngineAddress } from './engine-api.ts';
import { withGentleIptables } from './engine-firewall.ts';
import { currentRoutes, overlaps, removeRules, sweepEngine } from './engine-sweep.ts';
import { enter, strike, type EngineRemains } from '../process/ledger.ts';
import { tryLock } from '../process/lockdir.ts';
import { ownFolder, shortTemporaryRoot } from '../paths.ts';
import { processName } from '../process/proc.ts';
import { startServer, type Server } from '../process/process.ts';
import { endProcesses, reapAbandoned } from '../process/reap.ts';
import { executablesOf, toolHere, type ServerTool, type Tool } from '../fetch/tools.ts';

type EngineTool = Pick<Tool, 'path' | 'env' | 'version'>;

const pingDeadlineMs = 3_000;
const readyDeadlineMs = 60_000;
/** Containers get dockerd's own 10 s to end; then dockerd itself. */
const containerGraceS = 10;
const stopGraceMs = 25_000;
const emptyDeadlineMs = 15_000;
/** sun_path of unix(7), without its closing NUL. */
const socketPathBound = 107;

export class EngineUnavailable extends Error {}

export interface AnsweringEngine {
  readonly origin: 'answering';
  /** As DOCKER_HOST wants it. */
  readonly host: string;
  readonly version: string;
}

export interface PrivateEngine {
  readonly origin: 'private';
  readonly host: string;
  readonly socketPath: string;
  readonly version: string;
  readonly logFile: string;
  server(): Server;
  /**
   * Stops its containers and itself, and clears its mounts, bridges and rules. Images and
   * containers stay in `dir`.
   */
  stop(): Promise<void>;
  /** Ends dockerd as a crash would. Its containers go on until it is started again. */
  kill9(): Promise<void>;
  /** SIGSTOP: connections are accepted, and nothing is answered. */
  pause(): void;
  resume(): void;
  /**
   * Starts it on the same data after `stop`, `kill9` or a crash. An aborted signal calls the start
   * off.
   */
  start(signal?: AbortSignal): Promise<void>;
}

export type Engine = AnsweringEngine | PrivateEngine;

export interface PrivateEngineOptions {
  /** Images, containers and log; found again by the next start with the same folder. */
  readonly dir: string;
  readonly tool?: EngineTool;
  /**
   * Whether it keeps rules in the machine's firewall: isolation between networks, and containers'
   * way out.
   */
  readonly firewall: boolean;
  /** Nobody comes back to it: `stop` removes its containers at once instead of waiting for them. */
  readonly throwaway: boolean;
}

const usualSockets = (env: NodeJS.ProcessEnv): string[] => [
  '/var/run/docker.sock',
  ...(env['XDG_RUNTIME_DIR'] === undefined ? [] : [join(env['XDG_RUNTIME_DIR'], 'docker.sock')]),
  join(homedir(), '.docker/run/docker.sock'),
];

/**
 * The engine that answers at DOCKER_HOST or at a usual socket.
 * @throws EngineUnavailable when DOCKER_HOST names one that does not answer: another in its place
 * would surprise.
 */
export async function findEngine(env: NodeJS.ProcessEnv): Promise<AnsweringEngine | undefined> {
  const named = env['DOCKER_HOST'];
  const hosts = named === undefined || named === '' ? usualSockets(env).map((path) => `unix://${path}`) : [named];
  for (const host of hosts) {
    const address = parseEngineHost(host);
    if (address !== undefined && (await engineAnswers(address, pingDeadlineMs))) {
      return { origin: 'answering', host, version: await engineVersion(address) };
    }
  }
  if (named === undefined || named === '') return undefined;
  throw new EngineUnavailable(
    `DOCKER_HOST names ${named}, and no Docker engine answers there (unix:// and tcp:// without TLS are spoken).`,
  );
}

const engineVersion = async (address: EngineAddress): Promise<string> =>
  (await engineGet<{ Version: string }>(address, '/version', pingDeadlineMs)).Version;

/**
 * Kept beside the data, since networks of an earlier start lie in the range that was chosen then.
 */
interface EngineIdentity {
  readonly mark: string;
  readonly addressPool: string;
}

function chooseAddressPool(): string {
  const routes = currentRoutes();
  for (let attempt = 0; attempt < 100; attempt++) {
    const pool = `10.${randomInt(128, 256)}.${64 * randomInt(4)}.0/18`;
    if (!routes.some((route) => overlaps(route, pool))) return pool;
  }
  throw new EngineUnavailable('no range of 10.128.0.0/9 is free for networks of containers');
}

function keptIdentity(dir: string): EngineIdentity {
  const path = join(dir, 'engine.json');
  if (existsSync(path)) return JSON.parse(readFileSync(path, 'utf8')) as EngineIdentity;
  const mark = createHash('sha256')
    .update(`${dir} ${randomInt(2 ** 47)}`)
    .digest('hex')
    .slice(0, 32);
  const identity = { mark, addressPool: chooseAddressPool() };
  writeFileSync(path, JSON.stringify(identity));
  return identity;
}

interface Layout {
  readonly identity: EngineIdentity;
  readonly dir: string;
  readonly dataRoot: string;
  /** Sockets and pid files. */
  readonly runFolder: string;
  readonly execRoot: string;
  readonly socketPath: string;
  readonly pidFile: string;
  readonly configFile: string;
  readonly logFile: string;
}

function layOut(dir: string): Layout {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const identity = keptIdentity(dir);
  const runFolder = join(shortTemporaryRoot(), `longshore-${identity.mark.slice(0, 12)}`);
  const socketPath = join(runFolder, 'docker.sock');
  if (Buffer.byteLength(socketPath) > socketPathBound) {
    throw new EngineUnavailable(`${socketPath} is too long for a socket; set TMPDIR to a shorter folder`);
  }
  return {
    identity,
    dir,
    dataRoot: join(dir, 'data'),
    runFolder,
    execRoot: join(runFolder, 'exec'),
    socketPath,
    pidFile: join(runFolder, 'docker.pid'),
    configFile: join(dir, 'daemon.json'),
    logFile: join(dir, 'dockerd.log'),
  };
}

const cgroupOf = (identity: EngineIdentity): string => `longshore-${identity.mark.slice(0, 12)}`;

async function remainsOf(layout: Layout, tool: ServerTool, firewall: boolean): Promise<EngineRemains> {
  const [ip, iptables] = executablesOf(['ip', 'iptables'], tool.env);
  const busybox = ip === undefined ? await toolHere('busybox').catch(() => undefined) : undefined;
  const kept = ['PATH', 'LD_LIBRARY_PATH', 'XTABLES_LIBDIR'].flatMap((name) => {
    const value = tool.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    folders: [layout.dataRoot, layout.runFolder],
    cgroup: cgroupOf(layout.identity),
    addressPool: layout.identity.addressPool,
    ip: ip !== undefined ? [ip] : busybox === undefined ? undefined : [busybox.path, 'ip'],
    iptables: firewall && iptables !== undefined ? [iptables] : undefined,
    env: Object.fromEntries(kept),
  };
}

function daemonArguments(layout: Layout, firewall: boolean): string[] {
  const options: [string, string][] = [
    ['config-file', layout.configFile],
    ['host', `unix://${layout.socketPath}`],
    ['data-root', layout.dataRoot],
    ['exec-root', layout.execRoot],
    ['pidfile', layout.pidFile],
    // No default network: whoever runs containers makes a network for them.
    ['bridge', 'none'],
    ['default-address-pool', `base=${layout.identity.addressPool},size=22`],
    ['insecure-registry', '127.0.0.0/8'],
    // By name, so that the sweep finds its processes; the systemd driver would want a slice.
    ['cgroup-parent', `/${cgroupOf(layout.identity)}`],
    ['exec-opt', 'native.cgroupdriver=cgroupfs'],
    ['shutdown-timeout', String(containerGraceS)],
    // Ports by rules alone: a docker-proxy for each port is outside of its container's cgroup.
    ...(firewall
      ? [['userland-proxy', 'false'] as [string, string]]
      : ['iptables', 'ip6tables', 'ip-forward', 'ip-masq'].map((name): [string, string] => [name, 'false'])),
  ];
  return options.map(([name, value]) => `--${name}=${value}`);
}

/**
 * Pid files of a dockerd that was killed name pids that others may bear by now, and it would refuse
 * to start.
 */
async function clearStalePids(layout: Layout): Promise<void> {
  const containerdPid = join(layout.execRoot, 'containerd/containerd.pid');
  if (existsSync(containerdPid)) {
    const pid = Number(readFileSync(containerdPid, 'utf8'));
    // Dies with dockerd, a moment after it.
    const isOurs = existsSync(`/proc/${pid}`) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(layout.execRoot);
    const name = isOurs ? processName(pid) : undefined;
    if (name !== undefined) await endProcesses(() => [processName(pid) ?? []].flat(), 5_000);
    rmSync(containerdPid, { force: true });
  }
  rmSync(layout.pidFile, { force: true });
}

/**
 * @throws EngineUnavailable where a private engine can't be started, before anything is fetched for
 * it.
 */
export function requirePrivateEngine(): void {
  if (process.platform === 'linux' && process.getuid?.() === 0) return;
  throw new EngineUnavailable(
    [
      `No Docker engine answers at ${usualSockets(process.env)[0]}, and starting a private one needs Linux and root.`,
      'Install Docker Engine and start it (on Debian: the package docker.io), or name one: DOCKER_HOST=unix:///path/to/docker.sock',
    ].join('\n'),
  );
}

export async function startPrivateEngine(options: PrivateEngineOptions): Promise<PrivateEngine> {
  requirePrivateEngine();
  const tool = options.tool ?? (await toolHere('dockerd'));
  const layout = layOut(resolve(options.dir));
  const { mark } = layout.identity;
  const address: EngineAddress = { kind: 'unix', socketPath: layout.socketPath };
  const remains = await remainsOf(layout, tool, options.firewall);
  const env = options.firewall ? withGentleIptables(join(layout.dir, 'bin'), tool.env) : tool.env;

  // Two engines on one folder would end each other's processes, which bear the same mark.
  const lock = tryLock(join(layout.dir, 'engine.lock'));
  if (lock === undefined) throw new EngineUnavailable(`another process runs an engine in ${layout.dir}`);
  await reapAbandoned();

  const launch = async (signal?: AbortSignal): Promise<Server> => {
    ownFolder(layout.runFolder);
    enter({ kind: 'folder', id: `${mark}/folder`, path: layout.runFolder });
    enter({ kind: 'engine', id: `${mark}/engine`, remains });
    await clearStalePids(layout);
    // Of a dockerd that was killed: rules for containers that have ended, in chains that the next
    // one does not empty.
    await removeRules(remains);
    // Not the machine's own configuration. Docker 20 would write a key file below /etc; later ones
    // know no such setting.
    const config = tool.version.startsWith('20.') ? { 'deprecated-key-path': join(layout.dir, 'key.json') } : {};
    writeFileSync(layout.configFile, JSON.stringify(config));
    return startServer({
      name: 'dockerd',
      command: tool.path,
      args: daemonArguments(layout, options.firewall),
      env,
      cwd: layout.dir,
      logFile: layout.logFile,
      ready: () => engineAnswers(address, pingDeadlineMs),
      readyDeadlineMs,
      stopGraceMs,
      mark,
      ...(signal === undefined ? {} : { signal }),
    });
  };
  const clear = async (): Promise<void> => {
    await sweepEngine(remains);
    rmSync(layout.runFolder, { recursive: true, force: true });
    strike(`${mark}/engine`);
    strike(`${mark}/folder`);
  };
  const launchOrClear = async (signal?: AbortSignal): Promise<Server> => {
    try {
      return await launch(signal);
    } catch (error) {
      await clear();
      throw error;
    }
  };
  let server = await launchOrClear().catch((error: unknown) => {
    lock.release();
    throw error;
  });
  return {
    origin: 'private',
    host: `unix://${layout.socketPath}`,
    socketPath: layout.socketPath,
    version: await engineVersion(address),
    logFile: layout.logFile,
    server: () => server,
    stop: async () => {
      server.resume();
      if (options.throwaway && server.exit() === undefined) await emptyEngine(address);
      await server.stop();
      await clear();
      lock.release();
    },
    kill9: async () => void (await server.kill9()),
    pause: () => server.pause(),
    resume: () => server.resume(),
    start: async (signal) => {
      if (server.exit() === undefined) throw new Error('the engine runs already');
      server = await launchOrClear(signal);
    },
  };
}

/** Removes containers and networks; what can't be removed in time is left to the sweep. */
async function emptyEngine(address: EngineAddress): Promise<void> {
  const empty = async (): Promise<void> => {
    const deadlineMs = emptyDeadlineMs;
    const containers = await engineGet<{ Id: string }[]>(address, '/containers/json?all=1', deadlineMs);
    const removals = containers.map(({ Id }) =>
      engineRequest(address, 'DELETE', `/containers/${Id}?force=1&v=1`, { deadlineMs }),
    );
    await Promise.allSettled(removals);
    const networks = await engineGet<{ Id: string; Driver: string }[]>(address, '/networks', deadlineMs);
    const bridges = networks.filter(({ Driver }) => Driver === 'bridge');
    await Promise.allSettled(
      bridges.map(({ Id }) => engineRequest(address, 'DELETE', `/networks/${Id}`, { deadlineMs })),
    );
  };
  await within(empty(), emptyDeadlineMs, 'emptying the engine').catch(() => undefined);
}
