/**
 * Runs a server as a child process: starts it, waits until it is ready, stops it, and never leaves
 * it behind (ledger.ts). It gets its own session, so that Ctrl-C reaches only this process, which
 * then stops the servers in its own order.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readSync, fstatSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import { randomUUID } from 'node:crypto';
import { takeNameLock } from '../../lib/process/name-lock.ts';
import { sleep, withAbort, within } from '../../lib/time/backoff.ts';
import { enter, markVariable, newMark, strike } from './ledger.ts';
import { listensOn, processesMarked, processName } from './proc.ts';
import { endProcesses } from './reap.ts';

export interface ServerSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** The server's output is appended to this file. */
  readonly logFile: string;
  /**
   * The port of the server. `ready` is not called before the server listens there: until then
   * another program may answer on the port, and get what is meant for this server. (On a system
   * without /proc, `ready` is called at once.)
   */
  readonly port?: number;
  /**
   * Resolves to true if the server is ready; it may reject while the server is not. The signal
   * aborts at the deadline and when the server ends.
   */
  readonly ready: (signal: AbortSignal) => Promise<boolean>;
  readonly readyDeadlineMs: number;
  /** Time between SIGTERM and SIGKILL. */
  readonly stopGraceMs: number;
  /**
   * A fixed mark, for a server whose descendants may outlive it and belong to the next server with
   * the same mark. By default each server gets a new mark.
   */
  readonly mark?: string;
  /** Aborting cancels the start; nothing of it is left. */
  readonly signal?: AbortSignal;
}

export type Exit =
  { readonly kind: 'code'; readonly code: number } | { readonly kind: 'signal'; readonly signal: NodeJS.Signals };

export interface Server {
  readonly name: string;
  readonly pid: number;
  /** The mark in the environment of the server and its descendants. */
  readonly mark: string;
  readonly logFile: string;
  readonly exited: Promise<Exit>;
  /** Undefined while the server runs. */
  exit(): Exit | undefined;
  /** Ends the server and its descendants: SIGTERM, the grace, SIGKILL. */
  stop(): Promise<Exit>;
  /**
   * Sends SIGKILL to the server alone, like a crash: its children stay. Resolves when it has ended.
   */
  kill9(): Promise<Exit>;
  /** SIGSTOP: the server keeps its sockets but answers nothing. */
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

/** A server that can be started again on the same port and data. */
export interface Restartable {
  /** The running server, or the last one that ran; each restart replaces it. */
  server(): Server;
  /**
   * Ends what is left of the last server and starts the next. An aborted signal cancels the start.
   */
  restart(signal?: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

/** Starts the server; `launch` is also called for every restart. */
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
 * Starts the server and resolves when it is ready. If that fails, nothing of it is left, and the
 * error contains the end of its log.
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
  const others = spec.signal === undefined ? [] : [spec.signal];
  const { port } = spec;
  const listens = (): boolean => port === undefined || (listensOn(server.pid, port) ?? true);
  const look = async ({ signal }: AbortController): Promise<boolean> => {
    while (!signal.aborted) {
      try {
        if (listens() && (await spec.ready(signal))) return true;
      } catch {
        // Not ready yet.
      }
      await sleep(readyPollMs, signal);
    }
    return false;
  };
  if (await withAbort([ended.signal, ...others], look, spec.readyDeadlineMs)) return;
  if (spec.signal?.aborted === true) throw new ServerFailed(`the start of ${spec.name} was cancelled`);
  const exit = server.exit();
  const why = exit === undefined ? `was not ready within ${spec.readyDeadlineMs} ms` : describeExit(exit);
  throw new ServerFailed(`${spec.name} ${why}; the last lines of ${spec.logFile}:\n${logTail(spec.logFile)}`);
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
      // From here on, another process may have this pid. The mark stays in the ledger, for
      // descendants of the server.
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
    // The pid can't be reused before Node has collected the child, which sets `exit`.
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
 * Below the range from which the kernel chooses ports of outgoing connections, so that a restarted
 * server finds its port free.
 */
const portRange = { first: 20_000, last: 32_000 } as const;
const portAttempts = 50;

/** True if nothing listens on the loopback port now. */
export const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });

/** The holders of the ports that this process has. */
const held = new Map<number, string>();

/**
 * Takes a free loopback port until this process ends, so that no other process of this tooling
 * chooses it before the caller's server listens on it, or while that server starts again. A holder
 * may take its own port again.
 */
export async function holdPort(port: number, holder: string): Promise<boolean> {
  if (held.has(port)) return held.get(port) === holder && (await isFree(port));
  const lock = await takeNameLock(`port-${port}`);
  if (lock === undefined) return false;
  held.set(port, holder);
  if (await isFree(port)) return true;
  held.delete(port);
  await lock.release();
  return false;
}

/** A free loopback port, held for this process until it ends (`holdPort`). */
export async function freePort(holder: string = randomUUID()): Promise<number> {
  for (let attempt = 0; attempt < portAttempts; attempt++) {
    const port = portRange.first + Math.floor(Math.random() * (portRange.last - portRange.first));
    if (!held.has(port) && (await holdPort(port, holder))) return port;
  }
  throw new Error(`no free port between ${portRange.first} and ${portRange.last}`);
}

/**
 * Starts something on a free port; tries another port if the start fails and another program has
 * taken the port.
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
