/**
 * Runs Longshore's own programs as child processes. Each gets only the settings it is given (see
 * the programs' settings.ts).
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../paths.ts';
import { startServer, type Server } from '../process/process.ts';

const readyDeadlineMs = 30_000;
/** Longer than a program takes to shut down cleanly. */
const stopGraceMs = 30_000;

/** With `/metrics` and `/readyz`. */
export type ServingName = 'actors' | 'gateway' | 'host-agent';
export type ProgramName = ServingName | 'longshore-net' | 'longshore-dns';

export interface Program {
  readonly name: ServingName;
  readonly settings: Readonly<Record<string, string>>;
  /** Answers 200 once the program is ready. */
  readonly readyUrl: string;
  readonly logFile: string;
  /** Folder of the compiled programs; by default this repository's dist/. */
  readonly compiled?: string;
  /** Command prefix that runs the program, such as one that enters a network namespace. */
  readonly enter?: readonly string[];
}

/**
 * Variables that a program inherits: only those that Node and the system need. A program must not
 * pick up a stray setting from the user's shell.
 */
const inherited = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'LC_ALL', 'TZ', 'NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS'];

/**
 * Options of Node, as in the units of deploy/systemd. Records and messages live for a second or so,
 * until their checkpoint: twice the default of 16 MiB for young objects copies fewer of them, and
 * takes 7 to 9 % off the CPU time of a request (ADR 10). Agents have little traffic.
 */
export const nodeOptions: Readonly<Record<ProgramName, readonly string[]>> = {
  actors: ['--enable-source-maps', '--max-semi-space-size=32'],
  gateway: ['--enable-source-maps', '--max-semi-space-size=32'],
  'host-agent': ['--enable-source-maps'],
  'longshore-net': ['--enable-source-maps'],
  'longshore-dns': ['--enable-source-maps'],
};

/**
 * The file that Node runs: the bundle of `npm run build`. Where there is none, as in the archive of
 * an older build and in the copy of a mutant, it is the compiled entry.
 */
export function programFile(name: ProgramName, compiled = join(repositoryRoot, 'dist')): string {
  const bundle = join(compiled, 'programs', `${name}.js`);
  return existsSync(bundle) ? bundle : join(compiled, roomOf[name], 'main.js');
}

const roomOf: Readonly<Record<ProgramName, string>> = {
  actors: 'actors',
  gateway: 'gateway',
  'host-agent': 'host-agent',
  'longshore-net': 'host-agent/tenant-network',
  'longshore-dns': 'host-agent/tenant-network/names',
};

export function startProgram(program: Program, env: NodeJS.ProcessEnv, signal?: AbortSignal): Promise<Server> {
  const base = Object.fromEntries(
    inherited.flatMap((name) => {
      const value = env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
  const { compiled, enter = [] } = program;
  const main = programFile(program.name, compiled);
  const [command = process.execPath, ...args] = [...enter, process.execPath, ...nodeOptions[program.name], main];
  return startServer({
    name: program.name,
    command,
    args,
    env: { ...base, ...program.settings },
    cwd: repositoryRoot,
    logFile: program.logFile,
    port: Number(new URL(program.readyUrl).port),
    ready: async (signal) => (await fetch(program.readyUrl, { signal })).ok,
    readyDeadlineMs,
    stopGraceMs,
    ...(signal === undefined ? {} : { signal }),
  });
}
