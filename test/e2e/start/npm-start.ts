/** Runs `npm start` as a child process of a test, and checks what it leaves behind. */
import { once } from 'node:events';
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import type { DemoPeer } from '../../../dev/demo/peer.ts';
import { ledgerFolder } from '../../../dev/process/ledger.ts';
import { repositoryRoot } from '../../../dev/paths.ts';
import { allProcesses } from '../../../dev/process/proc.ts';
import { eventually } from '../support/eventually.ts';

const upDeadlineMs = 120_000;
const stopDeadlineMs = 60_000;

/** The content of dev.json. */
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
  /** Resolves when the output holds the text; rejects if the program ends first. */
  says(text: string, deadlineMs?: number): Promise<void>;
  /** Sends SIGINT, as Ctrl-C does, and resolves to the exit code. */
  interrupt(): Promise<number | null>;
  ended(): Promise<number | null>;
}

interface Command {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
}

/** The command that `npm start` runs after it has compiled everything. */
const compiledStart: Command = {
  command: process.execPath,
  args: ['--enable-source-maps', join(repositoryRoot, 'dist/dev/start.js')],
  cwd: process.cwd(),
};

export function launch(t: Test, env: NodeJS.ProcessEnv, { command, args, cwd } = compiledStart): Started {
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
    const tooLate = once(late, 'abort').then(() => Promise.reject(new Error(`npm start is still running:\n${output}`)));
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
      if (!output.includes(text)) throw new Error(`npm start ended before it printed "${text}":\n${output}`);
    },
    interrupt: async () => {
      child.kill('SIGINT');
      return ended();
    },
    ended,
  };
}

/** Processes that name the folder in their command line, environment or working directory. */
export function processesAbout(folder: string): string[] {
  const read = (path: string): string => {
    try {
      return path.endsWith('/cwd') ? readlinkSync(path) : readFileSync(path, 'utf8').replaceAll('\0', ' ');
    } catch {
      return ''; // the process has ended
    }
  };
  return allProcesses()
    .filter(({ pid }) => ['cmdline', 'environ', 'cwd'].some((name) => read(`/proc/${pid}/${name}`).includes(folder)))
    .map(({ pid }) => `${pid} ${read(`/proc/${pid}/cmdline`)}`);
}

export const ledgersOf = (pid: number): string[] =>
  existsSync(ledgerFolder()) ? readdirSync(ledgerFolder()).filter((name) => name.startsWith(`${pid}-`)) : [];

/** Checks that `npm start` left nothing behind: no dev.json, lock, process or ledger entry. */
export async function isGone(t: Test, state: string, started: Started): Promise<void> {
  t.notOk(existsSync(join(state, 'dev.json')), 'dev.json is removed');
  t.notOk(existsSync(join(state, 'start.lock')), 'the lock is released');
  await eventually(
    'its guard and servers end',
    async () => processesAbout(state),
    ({ length }) => length === 0,
  );
  t.same(ledgersOf(started.pid), [], 'its ledger is empty');
}
