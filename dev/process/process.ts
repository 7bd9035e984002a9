/**
 * A server as a child: started, waited for, stopped, and never left behind (ledger.ts). It runs in
 * a session of its own, so that Ctrl-C reaches us alone and the order of stopping is ours.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readSync, fstatSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import { sleep, within } from '../../lib/backoff.ts';
import { enter, markVariable, newMark, strike } from './ledger.ts';
import { processesMarked, processName } from './proc.ts';
import { endProcesses } from './reap.ts';

export interface ServerSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** Output is appended here. */
  readonly logFile: string;
  /**
   * Whether it serves; may reject while it does not. The signal aborts at the deadline and when the
   * server ends.
   */
  readonly ready: (signal: AbortSignal) => Promise<boolean>;
  readonly readyDeadlineMs: number;
  /** Between SIGTERM and SIGKILL. */
  readonly stopGraceMs: number;
  /**
   * Where what it started may outlive it and is taken over by its successor, both bear the same
   * mark.
   */
  readonly mark?: string;
  /** Aborted: the start is called off, and nothing of it is left. */
  readonly signal?: AbortSignal;
}

export type Exit =
  { readonly kind: 'code'; readonly code: number } | { readonly kind: 'signal'; readonly signal: NodeJS.Signals };

export interface Server {
  readonly name: string;
  readonly pid: number;
  /** Borne by the server and its descendants in their environment. */
  readonly mark: string;
  readonly logFile: string;
  readonly exited: Promise<Exit>;
  /** Set once it has ended. */
  exit(): Exit | undefined;
  /** Ends it and what it started: SIGTERM, the grace, SIGKILL. */
  stop(): Promise<Exit>;
  /** SIGKILL to the server alone, as a crash would: its children stay. Resolves when it is gone. */
  kill9(): Promise<Exit>;
  /** SIGSTOP: alive, holding its sockets, answering nothing. */
  pause(): void;
  resume(): void;
}

const readyPollMs = 20;
const killWaitMs = 10_000;
const logTailBytes = 4_000;

export class ServerFailed extends Error {}

export const describeExit = (exit: Exit): string =>
  exit.kind === 'code' ? `ended with exit code ${exit.code}` : `was ended by ${exit.signal}`;

export function logTail(path: string): string {
  if (!existsSync(path)) return '';
  const file = openSync(path, 'r');
  try {
    const size = fstatSync(file).size;
    const tail = Buffer.alloc(Math.min(size, logTailBytes));
    readSync(file, tail, 0, tail.length, size - tail.length);
    return tail.toString('utf8').trim();
  } finally {
    closeSync(file);
  }
}

/** A server that can be started again as it was: on the same port, on the same data. */
export interface Restartable {
  /** The running server, or the last one that ran; another after a restart. */
  server(): Server;
  /**
   * Ends what is left of the last one and starts the next. An aborted signal calls the start off.
   */
  restart(signal?: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

/** Starts the first; `launch` starts each of its successors too. */
export async function startRestartable(launch: (signal?: AbortSignal) => Promise<Server>): Promise<Restartable> {
  let server = await launch();
  const stop = async (): Promise<void> => void (await server.stop());
  return {
    server: () => server,
    stop,
    restart: async (signal) => {
      await stop();
      server = await launch(signal);
    },
  };
}

/**
 * Starts the server and resolves when it is ready; where it fails to, nothing of it is left and the
 * error holds its log's tail.
 */
export async function startServer(spec: ServerSpec): Promise<Server> {
  const server = spawnServer(spec);
  try {
    await waitReady(server, spec);
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function waitReady(server: Server, spec: ServerSpec): Promise<void> {
  const ended = new AbortController();
  void server.exited.then(() => ended.abort());
  const deadline = AbortSignal.timeout(spec.readyDeadlineMs);
  const signal = AbortSignal.any([deadline, ended.signal, ...(spec.signal === undefined ? [] : [spec.signal])]);
  while (!signal.aborted) {
    try {
      if (await spec.ready(signal)) return;
    } catch {
      // Not yet.
    }
    await sleep(readyPollMs, signal);
  }
  if (spec.signal?.aborted === true) throw new ServerFailed(`the start of ${spec.name} was called off`);
  const exit = server.exit();
  const why = exit === undefined ? `was not ready within ${spec.readyDeadlineMs} ms` : describeExit(exit);
  throw new ServerFailed(`${spec.name} ${why}; the end of ${spec.logFile}:\n${logTail(spec.logFile)}`);
}

function spawnServer(spec: ServerSpec): Server {
  const mark = spec.mark ?? newMark();
  mkdirSync(spec.cwd, { recursive: true });
  mkdirSync(dirname(spec.logFile), { recursive: true });
  enter({ kind: 'server', id: mark, name: spec.name, graceMs: spec.stopGraceMs });
  const log = openSync(spec.logFile, 'a', 0o600);
  let child: ChildProcess;
  try {
    child = spawn(spec.command, spec.args, {
      cwd: spec.cwd,
      env: { ...spec.env, [markVariable]: mark },
      stdio: ['ignore', log, log],
      detached: true,
    });
  } finally {
    closeSync(log);
  }
  const { pid } = child;
  let exit: Exit | undefined;
  const exited = new Promise<Exit>((resolve) => {
    const settle = (value: Exit): void => {
      exit = value;
      // Its pid may be another's from here on. The mark stays in the ledger, for what the server
      // started.
      strike(`${mark}/${pid}`);
      resolve(value);
    };
    child.once('error', () => settle({ kind: 'code', code: 127 }));
    child.once('exit', (code, signal) =>
      settle(signal === null ? { kind: 'code', code: code ?? 0 } : { kind: 'signal', signal }),
    );
  });
  if (pid === undefined) {
    strike(mark);
    throw new ServerFailed(`${spec.name}: ${spec.command} cannot be started`);
  }
  const named = processName(pid);
  if (named !== undefined) enter({ kind: 'process', id: `${mark}/${pid}`, process: named });

  const signal = (name: NodeJS.Signals): void => {
    // The pid is ours until Node has collected the child, which is when `exit` is set.
    if (exit === undefined) child.kill(name);
  };
  const stop = async (): Promise<Exit> => {
    signal('SIGTERM');
    signal('SIGCONT');
    const ended = new AbortController();
    void exited.then(() => ended.abort());
    await sleep(spec.stopGraceMs, ended.signal);
    signal('SIGKILL');
    const outcome = await within(exited, killWaitMs, `ending ${spec.name}`);
    await endProcesses(() => processesMarked(markVariable, mark), 1_000);
    strike(mark);
    return outcome;
  };
  return {
    name: spec.name,
    pid,
    mark,
    logFile: spec.logFile,
    exited,
    exit: () => exit,
    stop,
    kill9: () => {
      signal('SIGKILL');
      return within(exited, killWaitMs, `killing ${spec.name}`);
    },
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
  };
}

/**
 * Below the range from which the kernel takes outgoing ports: a server that is restarted finds its
 * port free again.
 */
const portRange = { first: 20_000, last: 32_000 } as const;
const portAttempts = 50;

export const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });

/**
 * A loopback port that nobody listens on now. Another process may take it before you do: see
 * `onFreePort`.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < portAttempts; attempt++) {
    const port = portRange.first + Math.floor(Math.random() * (portRange.last - portRange.first));
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port between ${portRange.first} and ${portRange.last}`);
}

/**
 * Starts something on a free port, and on another when it failed and the port has been taken
 * meanwhile.
 */
export async function onFreePort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    try {
      return await start(port);
    } catch (error) {
      if (attempt === 3 || (await isFree(port))) throw error;
    }
  }
}
