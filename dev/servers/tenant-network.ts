/**
 * Runs longshore-net and the two resolvers beside an engine of this machine, with a router
 * namespace of their own. The namespace is in the ledger, so it is removed also after a start that
 * was killed.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { createConnection } from 'node:net';
import { dirname, join } from 'node:path';
import { ownFolder, repositoryRoot, shortTemporaryRoot } from '../paths.ts';
import { enter, strike } from '../process/ledger.ts';
import { startRestartable, startServer, type Restartable } from '../process/process.ts';
import { removeNamespace } from '../process/reap.ts';
import { nodeOptions, programFile, type ProgramName } from '../stack/programs.ts';
import type { ServerTool } from '../fetch/tools.ts';
import { pathWith } from '../fetch/wrappers.ts';

export interface TenantNetworkOptions {
  /** Holds its state and its log. */
  readonly folder: string;
  readonly namespaces: string;
  /** `ip` and `nft`; with a mesh also `wg` and `wireguard-go`. */
  readonly tools: Readonly<Record<string, ServerTool>>;
  readonly path: string;
  /** Replaces settings. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface TenantNetwork {
  readonly net: Restartable;
  /** The two resolvers. */
  readonly names: readonly Restartable[];
  readonly socket: string;
  /** Name of the router namespace. */
  readonly router: string;
  /** Stops all three, and deletes the router namespace, and with it every link. */
  stop(): Promise<void>;
}

/** The folder of the network namespaces of the engine that answers at this DOCKER_HOST. */
export function namespacesOf(dockerHost: string): string {
  const beside = join(dirname(dockerHost.replace(/^unix:\/\//, '')), 'exec');
  return existsSync(beside) ? join(beside, 'netns') : '/var/run/docker/netns';
}

export async function startTenantNetwork(options: TenantNetworkOptions): Promise<TenantNetwork> {
  const { folder, namespaces, tools, path } = options;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const mark = createHash('sha256').update(folder).digest('hex').slice(0, 8);
  const router = `longshore-${mark}`;
  // A socket's path is short.
  const runFolder = join(shortTemporaryRoot(), `longshore-net-${mark}`);
  ownFolder(runFolder);
  enter({ kind: 'folder', id: `${mark}/net`, path: runFolder });
  enter({ kind: 'namespace', id: `${mark}/router`, name: router });
  const socket = join(runFolder, 'net.sock');
  const env = { PATH: pathWith(join(folder, 'bin'), tools, path), HOME: folder };
  const settings = {
    ...env,
    NET_STATE_DIR: folder,
    NET_NAMES_DIR: join(folder, 'names'),
    NET_ROUTER: router,
    ...options.settings,
  };
  const start = (
    name: ProgramName,
    log: string,
    own: Readonly<Record<string, string>>,
    ready: () => Promise<boolean>,
  ): Promise<Restartable> =>
    startRestartable((signal) =>
      startServer({
        name,
        command: process.execPath,
        args: [...nodeOptions[name], programFile(name)],
        env: { ...settings, ...own },
        cwd: repositoryRoot,
        logFile: join(folder, `${log}.log`),
        ready,
        readyDeadlineMs: 30_000,
        stopGraceMs: 10_000,
        ...(signal === undefined ? {} : { signal }),
      }),
    );
  const net = await start('longshore-net', 'longshore-net', { NET_SOCKET: socket, NET_NAMESPACES: namespaces }, () =>
    answers(socket),
  );
  // They are ready when something is desired.
  const resolvers = (['first', 'second'] as const).map((which) =>
    start('longshore-dns', `longshore-dns-${which}`, { DNS_RESOLVER: which }, () => Promise.resolve(true)),
  );
  const names = await Promise.all(resolvers);
  return {
    net,
    names,
    socket,
    router,
    stop: async () => {
      await Promise.all([net, ...names].map((each) => each.stop()));
      await removeNamespace(router);
      rmSync(runFolder, { recursive: true, force: true });
      strike(`${mark}/router`);
      strike(`${mark}/net`);
    },
  };
}

const answers = (socket: string): Promise<boolean> =>
  new Promise((resolve) => {
    const connection = createConnection(socket);
    connection.once('connect', () => resolve(true)).once('error', () => resolve(false));
    connection.once('connect', () => connection.destroy());
  });
