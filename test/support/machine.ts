/**
 * A separate machine for a test: anonymous network and mount namespaces, kept alive by a process.
 * However the test ends, the ledger ends that process, and the kernel removes the namespaces with
 * their interfaces and mounts. So test runs do not affect each other.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { markVariable } from '../../dev/process/ledger.ts';
import { startServer, type Server } from '../../dev/process/process.ts';
import { run, type Ran } from '../../dev/process/run.ts';
import type { Tool } from '../../dev/fetch/tools.ts';

const setupDeadlineMs = 10_000;
export const commandDeadlineMs = 30_000;
const stopGraceMs = 2_000;

/** Runs teardowns in reverse order: a tap test, or a run of the fault harness. */
export interface Scope {
  teardown(end: () => unknown): void;
}

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

export interface Machine {
  readonly name: string;
  /** The machine's own folder, in which its commands run. */
  readonly folder: string;
  /** The first folder in the machine's PATH. */
  readonly programs: string;
  /** Id of the process that keeps the namespaces alive, for `ip link … netns`. */
  readonly pid: number;
  /** Prefix of a command line to run it in the machine's network, with the caller's mounts. */
  readonly enter: readonly string[];
  run(command: string, args: readonly string[], options?: RunOptions): Promise<Ran>;
  /** Like `run`, but a failure throws an error with the command's output. */
  must(command: string, args: readonly string[], options?: RunOptions): Promise<Ran>;
  start(daemon: Daemon): Promise<Server>;
}

export interface MachineOptions {
  readonly name: string;
  /** Path of a folder that does not exist yet. */
  readonly folder: string;
  readonly tools: readonly Tool[];
  /** Shell commands that make mounts visible only in the machine. */
  readonly mounts?: readonly string[];
  /** It has the network of this machine, and only mounts of its own. */
  readonly sharesNetwork?: boolean;
}

/** Merges the environments of several tools; in PATH, folders of single tools come first. */
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

/** Creates a machine with a loopback interface and these tools. */
export async function createMachine(scope: Scope, options: MachineOptions): Promise<Machine> {
  const { name, folder, tools, mounts = [], sharesNetwork = false } = options;
  mkdirSync(folder);
  const programs = join(folder, 'bin');
  mkdirSync(programs);
  const env = environmentOf(tools, programs);
  const marker = join(folder, 'set-up');
  const script = [
    'set -e',
    // For the sockets and pid files of the daemons.
    'mount -t tmpfs -o mode=755 longshore /run',
    ...mounts,
    'ip link set dev lo up',
    `: > '${marker}'`,
    'exec sleep infinity',
  ].join('\n');
  const holder = await startServer({
    name: `${name}'s namespaces`,
    command: 'unshare',
    args: [...(sharesNetwork ? [] : ['--net']), '--mount', '--', 'sh', '-c', script],
    env,
    cwd: folder,
    logFile: join(folder, 'namespace.log'),
    ready: async () => Promise.resolve(existsSync(marker)),
    readyDeadlineMs: setupDeadlineMs,
    stopGraceMs,
  });
  // Ends daemons that detach, too (userspace WireGuard), because they inherit the mark.
  scope.teardown(() => holder.stop());

  const entering = (command: string, args: readonly string[]): string[] => [
    ...['--target', String(holder.pid), '--net', '--mount', `--wd=${folder}`, '--', command],
    ...args,
  ];
  const runHere: Machine['run'] = (command, args, given = {}) =>
    run('nsenter', entering(command, args), {
      deadlineMs: given.deadlineMs ?? commandDeadlineMs,
      env: { ...env, ...given.env, [markVariable]: holder.mark },
    });
  return {
    name,
    folder,
    programs,
    pid: holder.pid,
    enter: ['nsenter', '--target', String(holder.pid), '--net', '--'],
    run: runHere,
    must: async (command, args, given) => {
      const ran = await runHere(command, args, given);
      if (ran.code === 0) return ran;
      const how = ran.timedOut ? 'exceeded its deadline' : `ended with ${ran.code ?? ran.signal}`;
      throw new Error(`${name}: ${command} ${args.join(' ')} ${how}:\n${ran.stdout}${ran.stderr}`);
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
      scope.teardown(() => server.stop());
      return server;
    },
  };
}
