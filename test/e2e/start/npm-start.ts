/** `npm start` as a child of a test: what it says, what runs because of it, and what it leaves. */
import { once } from 'node:events';
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import type { DemoPeer } from '../../../dev/demo/peer.ts';
import { ledgerFolder } from '../../../dev/process/ledger.ts';
import { repositoryRoot } from '../../../dev/paths.ts';
import { allProcesses } from '../../../dev/process/proc.ts';
import { eventually } from '../support/eventually.ts';

const upDeadlineMs = 120_000;
const stopDeadlineMs = 60_000;

/** What dev.json holds. */
export interface Dev {
  readonly baseUrl: string;
  readonly tenants: { readonly demo: { readonly token: string }; readonly other: { readonly token: string } };
  readonly operator: { readonly token: string };
  readonly docker: { readonly host: string };
  readonly image: { readonly registry: string; readonly repository: string; readonly tag: string };
  readonly nats: { readonly url: string };
  readonly metrics: readonly string[];
  readonly vpn: DemoPeer;
  readonly pid: number;
}

export interface Started {
  readonly pid: number;
  output(): string;
  /** Resolves when the output holds the text; rejects where the program ends before. */
  says(text: string, deadlineMs?: number): Promise<void>;
  /** Ctrl-C, and the exit code. */
  interrupt(): Promise<number | null>;
  ended(): Promise<number | null>;
}

/**
 * A first start would take port 8080 for its API if that is free, and so would another test's at
 * the same moment: each then has a port of its own to prefer.
 */
function preferOwnPort(stateFolder: string): void {
  const file = join(stateFolder, 'ports.json');
  if (existsSync(file)) return;
  mkdirSync(stateFolder, { recursive: true, mode: 0o700 });
  writeFileSync(file, JSON.stringify({ api: 20_000 + Math.floor(Math.random() * 10_000) }));
}

interface Command {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
}

/** What `npm start` runs once everything is compiled. */
const compiledStart: Command = {
  command: process.execPath,
  args: ['--enable-source-maps', join(repositoryRoot, 'dist/dev/start.js')],
  cwd: process.cwd(),
};

export function launch(t: Test, env: NodeJS.ProcessEnv, { command, args, cwd } = compiledStart): Started {
  if (env['LONGSHORE_STATE'] !== undefined) preferOwnPort(env['LONGSHORE_STATE']);
  const child: ChildProcess = spawn(command, args, { env, cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const exited = once(child, 'close').then(([code]) => code as number | null);
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  const ended = async (): Promise<number | null> => {
    const late = AbortSignal.timeout(stopDeadlineMs);
    const tooLate = once(late, 'abort').then(() => Promise.reject(new Error(`still there:\n${output}`)));
    return Promise.race([exited, tooLate]);
  };
  t.teardown(async () => {
    if (hasEnded()) return;
    child.kill('SIGTERM');
    await ended();
  });
  return {
    pid: child.pid ?? 0,
    output: () => output,
    says: async (text, deadlineMs = upDeadlineMs) => {
      await eventually(
        `"${text}"`,
        async () => ({ hasEnded: hasEnded(), output }),
        (seen) => seen.hasEnded || seen.output.includes(text),
        deadlineMs,
      );
      if (!output.includes(text)) throw new Error(`ended before it said "${text}":\n${output}`);
    },
    interrupt: async () => {
      child.kill('SIGINT');
      return ended();
    },
    ended,
  };
}

/**
 * Whatever runs that has to do with the folder: by its command line, its environment or where it
 * works.
 */
export function processesAbout(folder: string): string[] {
  const read = (path: string): string => {
    try {
      return path.endsWith('/cwd') ? readlinkSync(path) : readFileSync(path, 'utf8').replaceAll('\0', ' ');
    } catch {
      return ''; // gone meanwhile
    }
  };
  return allProcesses()
    .filter(({ pid }) => ['cmdline', 'environ', 'cwd'].some((name) => read(`/proc/${pid}/${name}`).includes(folder)))
    .map(({ pid }) => `${pid} ${read(`/proc/${pid}/cmdline`)}`);
}

export const ledgersOf = (pid: number): string[] =>
  existsSync(ledgerFolder()) ? readdirSync(ledgerFolder()).filter((name) => name.startsWith(`${pid}-`)) : [];

/** Nothing of it is left: no file that says it runs, no process, nothing in its ledger. */
export async function isGone(t: Test, state: string, started: Started): Promise<void> {
  t.notOk(existsSync(join(state, 'dev.json')), 'dev.json went with it');
  t.notOk(existsSync(join(state, 'start.lock')), 'the folder is free');
  await eventually(
    'its guard and its servers end',
    async () => processesAbout(state),
    ({ length }) => length === 0,
  );
  t.same(ledgersOf(started.pid), [], 'nothing is left in its ledger');
}
