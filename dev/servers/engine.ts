/**
 * A container engine: either one that already runs on this machine, or a private dockerd with its
 * own folders. Several private engines can run side by side, each with its own socket, containerd,
 * cgroup and address range. They share the machine's firewall, in which each keeps its own rules
 * (engine-firewall.ts).
 */
import { createHash, randomInt } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import Type, { type Static } from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { currentRoutes } from '../../host-agent/network/routes.ts';
import { within } from '../../lib/time/backoff.ts';
import { engineAnswers, engineGet, engineRequest, parseEngineHost, type EngineAddress } from './engine-api.ts';
import { withGentleIptables } from './engine-firewall.ts';
import { removeRules, routesIn, sweepEngine } from './engine-sweep.ts';
import { enter, strike, type EngineRemains } from '../process/ledger.ts';
import { tryLock } from '../process/lockdir.ts';
import { readJsonFile } from '../json-file.ts';
import { ownFolder, shortTemporaryRoot } from '../paths.ts';
import { processName } from '../process/proc.ts';
import { startServer, type Server } from '../process/process.ts';
import { endProcesses, reapAbandoned } from '../process/reap.ts';
import { executablesOf, toolHere, type ServerTool, type Tool } from '../fetch/tools.ts';

type EngineTool = Pick<Tool, 'path' | 'env' | 'version'>;

const pingDeadlineMs = 3_000;
const readyDeadlineMs = 60_000;
/**
 * When dockerd stops, it gives its containers this long (its own default); `stopGraceMs` covers
 * both.
 */
const containerGraceS = 10;
const stopGraceMs = 25_000;
const emptyDeadlineMs = 15_000;
/** Bytes of `sun_path` (unix(7)) without the closing NUL. */
const socketPathBound = 107;

export class EngineUnavailable extends Error {}

export interface AnsweringEngine {
  readonly origin: 'answering';
  /** In the form of DOCKER_HOST. */
  readonly host: string;
  readonly version: string;
}

export interface PrivateEngine {
  readonly origin: 'private';
  readonly host: string;
  readonly socketPath: string;
  /** Its sockets; the command line of each of its processes names it. */
  readonly runFolder: string;
  readonly version: string;
  readonly logFile: string;
  server(): Server;
  /**
   * Stops its containers and dockerd, and clears its mounts, bridges and rules. Images and
   * containers stay in `dir`.
   */
  stop(): Promise<void>;
  /**
   * Kills dockerd, as a crash would. Its containers keep running until dockerd is started again.
   */
  kill9(): Promise<void>;
  /** SIGSTOP: the kernel still accepts connections, but dockerd answers nothing. */
  pause(): void;
  resume(): void;
  /**
   * Starts dockerd on the same data after `stop`, `kill9` or a crash. An aborted signal cancels the
   * start.
   */
  start(signal?: AbortSignal): Promise<void>;
}

export type Engine = AnsweringEngine | PrivateEngine;

export interface PrivateEngineOptions {
  /** Holds images, containers and the log. A later start with the same folder finds them again. */
  readonly dir: string;
  readonly tool?: EngineTool;
  /**
   * True if dockerd adds rules to the machine's firewall: isolation between networks, and
   * containers' outgoing traffic.
   */
  readonly firewall: boolean;
  /**
   * The engine will not be started again: `stop` removes its containers at once instead of stopping
   * them gracefully.
   */
  readonly throwaway: boolean;
}

const usualSockets = (env: NodeJS.ProcessEnv): string[] => [
  '/var/run/docker.sock',
  ...(env['XDG_RUNTIME_DIR'] === undefined ? [] : [join(env['XDG_RUNTIME_DIR'], 'docker.sock')]),
  join(homedir(), '.docker/run/docker.sock'),
];

/**
 * Finds the engine that answers at DOCKER_HOST or, if that is not set, at a usual socket.
 * @throws EngineUnavailable if DOCKER_HOST names an engine that does not answer: silently using
 * another one would surprise the user.
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
    `DOCKER_HOST names ${named}, but no Docker engine answers there. Start it, or unset DOCKER_HOST. Supported: unix:// and tcp:// without TLS.`,
  );
}

const engineVersion = async (address: EngineAddress): Promise<string> =>
  (await engineGet<{ Version: string }>(address, '/version', pingDeadlineMs)).Version;

/**
 * Kept beside the data, because networks of an earlier start use addresses from the range chosen
 * then.
 */
const EngineIdentity = Type.Object({ mark: Type.String(), addressPool: Type.String() });
type EngineIdentity = Readonly<Static<typeof EngineIdentity>>;
const decodeIdentity = decoder(EngineIdentity);

function chooseAddressPool(): string {
  const routes = currentRoutes();
  for (let attempt = 0; attempt < 100; attempt++) {
    const pool = `10.${randomInt(128, 256)}.${64 * randomInt(4)}.0/18`;
    if (routesIn(pool, routes).length === 0) return pool;
  }
  throw new EngineUnavailable(
    'no address range in 10.128.0.0/9 is free for container networks; remove a route that covers it',
  );
}

function keptIdentity(dir: string): EngineIdentity {
  const path = join(dir, 'engine.json');
  if (existsSync(path)) return readJsonFile(path, decodeIdentity, `delete ${dir} to start with a new engine`);
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
  /** Sockets and pid files. Its path is short; see `shortTemporaryRoot`. */
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
    throw new EngineUnavailable(`${socketPath} is too long for a socket path; set TMPDIR to a shorter path`);
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
    // No default network: the agent makes its own network for containers.
    ['bridge', 'none'],
    ['default-address-pool', `base=${layout.identity.addressPool},size=22`],
    ['insecure-registry', '127.0.0.0/8'],
    // The engine counts layers over all pulls: with its default of three, one slow registry would
    // hold up every other pull. The agent bounds the pulls themselves.
    ['max-concurrent-downloads', '1024'],
    // A cgroup with a known name, so that the sweep finds its processes. The systemd driver would
    // require a slice instead.
    ['cgroup-parent', `/${cgroupOf(layout.identity)}`],
    ['exec-opt', 'native.cgroupdriver=cgroupfs'],
    ['shutdown-timeout', String(containerGraceS)],
    // Ports are published by firewall rules alone: a docker-proxy process would run outside the
    // container's cgroup.
    ...(firewall
      ? [['userland-proxy', 'false'] as [string, string]]
      : ['iptables', 'ip6tables', 'ip-forward', 'ip-masq'].map((name): [string, string] => [name, 'false'])),
  ];
  return options.map(([name, value]) => `--${name}=${value}`);
}

/**
 * Removes the pid files of a dockerd that was killed. Another process may use those pids by now,
 * and dockerd would then refuse to start.
 */
async function clearStalePids(layout: Layout): Promise<void> {
  const containerdPid = join(layout.execRoot, 'containerd/containerd.pid');
  if (existsSync(containerdPid)) {
    const pid = Number(readFileSync(containerdPid, 'utf8'));
    // containerd ends shortly after its dockerd, so it may still be running.
    const isOurs = existsSync(`/proc/${pid}`) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(layout.execRoot);
    const name = isOurs ? processName(pid) : undefined;
    if (name !== undefined) await endProcesses(() => [processName(pid) ?? []].flat(), 5_000);
    rmSync(containerdPid, { force: true });
  }
  rmSync(layout.pidFile, { force: true });
}

/**
 * Call it before anything is fetched for a private engine.
 * @throws EngineUnavailable if this machine can't run one.
 */
export function requirePrivateEngine(): void {
  if (process.platform === 'linux' && process.getuid?.() === 0) return;
  throw new EngineUnavailable(
    [
      `No Docker engine answers at ${usualSockets(process.env)[0]}, and starting a private one needs Linux and root.`,
      'Install and start Docker Engine (Debian package: docker.io), or point to a running engine: DOCKER_HOST=unix:///path/to/docker.sock',
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

  // Two engines in one folder would share a mark, and each would end the other's processes.
  const lock = tryLock(join(layout.dir, 'engine.lock'));
  if (lock === undefined)
    throw new EngineUnavailable(`another process runs an engine in ${layout.dir}; stop it, or use another folder`);
  await reapAbandoned();

  const launch = async (signal?: AbortSignal): Promise<Server> => {
    ownFolder(layout.runFolder);
    enter({ kind: 'folder', id: `${mark}/folder`, path: layout.runFolder });
    enter({ kind: 'engine', id: `${mark}/engine`, remains });
    await clearStalePids(layout);
    // A dockerd that was killed leaves rules for its containers, in chains that the next dockerd
    // does not empty (see engine-firewall.ts).
    await removeRules(remains);
    // A configuration file of our own, so that dockerd does not read the machine's. By default
    // Docker 20 writes a key file below /etc; later versions reject the setting that moves it.
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
    runFolder: layout.runFolder,
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
      if (server.exit() === undefined) throw new Error('the engine is already running');
      server = await launchOrClear(signal);
    },
  };
}

/** Removes containers and networks. What can't be removed in time is left to the sweep. */
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
