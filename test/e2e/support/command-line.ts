/** `longshore` as people type it. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Test } from 'tap';
import { repositoryRoot } from '../../../dev/paths.ts';
import { temporaryFolder } from '../../support/folder.ts';
import type { Rig } from './rig.ts';

const program = join(repositoryRoot, 'dist', 'dev', 'longshore.js');
/** Deadline of one command. */
const deadlineMs = 300_000;

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
  readonly bytes: Buffer;
}

export interface Options {
  readonly input?: string | Buffer;
  readonly env?: NodeJS.ProcessEnv;
  /** The folder that it runs in. */
  readonly cwd?: string;
  /** Called with what was said so far; `interrupt` is Ctrl-C. */
  readonly watch?: (said: Pick<Ran, 'out' | 'err'>, interrupt: () => void) => void;
  /** Called when it runs, with its Ctrl-C. */
  readonly started?: (interrupt: () => void) => void;
  /** Lines to type, each once the text before it has appeared. */
  readonly typed?: readonly (readonly [after: RegExp, line: string])[];
}

type Typed = NonNullable<Options['typed']>;

export function commandLine(t: Test) {
  const config = join(temporaryFolder(t), 'config.json');
  const base = { PATH: process.env['PATH'], LONGSHORE_CONFIG: config };
  const start = (
    command: string,
    args: readonly string[],
    { input, env, cwd, watch, started, typed }: Options,
  ): Promise<Ran> => {
    const child = spawn(command, args, { env: { ...base, ...env }, cwd, stdio: ['pipe', 'pipe', 'pipe'] });
    const [out, err]: [Buffer[], Buffer[]] = [[], []];
    const said = (): Pick<Ran, 'out' | 'err'> => ({
      out: Buffer.concat(out).toString(),
      err: Buffer.concat(err).toString(),
    });
    let isInterrupted = false;
    const interrupt = (): void => {
      // A second Ctrl-C would end it at once.
      if (!isInterrupted) child.kill('SIGINT');
      isInterrupted = true;
    };
    started?.(interrupt);
    const lines = [...(typed ?? [])];
    const look = (to: Buffer[]) => (chunk: Buffer) => {
      to.push(chunk);
      watch?.(said(), interrupt);
      const [next] = lines;
      if (next?.[0].test(said().out) === true) child.stdin.write(lines.shift()?.[1] ?? '');
    };
    child.stdout.on('data', look(out));
    child.stderr.on('data', look(err));
    child.stdin.on('error', () => {});
    if (typed === undefined) child.stdin.end(input ?? '');
    const timer = setTimeout(() => child.kill('SIGKILL'), deadlineMs);
    return new Promise((resolve) =>
      child.once('close', (code) => {
        clearTimeout(timer);
        resolve({ code, ...said(), bytes: Buffer.concat(out) });
      }),
    );
  };
  const longshore = (args: readonly string[], options: Options = {}): Promise<Ran> =>
    start(process.execPath, [program, ...args], options);
  /** Any program on a terminal of this size, as util-linux's `script` makes one. */
  const typing = (words: readonly string[], typed: Typed, env: NodeJS.ProcessEnv = {}): Promise<Ran> => {
    const command = words.map((word) => `'${word}'`).join(' ');
    return start('script', ['-qec', `stty cols 97 rows 31; ${command}`, '/dev/null'], { typed, env });
  };
  const onTerminal = (args: readonly string[], typed: Typed, env?: NodeJS.ProcessEnv): Promise<Ran> =>
    typing([process.execPath, program, ...args], typed, env);
  return { config, longshore, onTerminal, typing };
}

/** The demo image, as a command names it. */
export const imageOf = ({ image }: Rig): string => `${image.registry}/${image.repository}:${image.tag}`;
