/** Runs a command to its end, with a deadline. */
import { spawn } from 'node:child_process';

export interface Ran {
  /** Undefined if a signal ended the command. */
  readonly code: number | undefined;
  readonly signal: NodeJS.Signals | undefined;
  readonly timedOut: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

const outputBoundBytes = 4 * 1024 * 1024;

/** Rejects only if the command can't be started. */
export function run(
  command: string,
  args: readonly string[],
  options: { readonly deadlineMs: number; readonly env?: NodeJS.ProcessEnv; readonly cwd?: string },
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    // A process group of its own, so that the deadline also ends its children (such as apt's
    // downloaders).
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
      env: options.env ?? process.env,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    const end = (): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended in the meantime.
      }
    };
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      end();
    }, options.deadlineMs);
    // Ctrl-C does not reach another process group, so end it when this process exits.
    process.once('exit', end);
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        output[name] = (output[name] + text).slice(-outputBoundBytes);
      });
    }
    const settle = (): void => {
      clearTimeout(timer);
      process.removeListener('exit', end);
    };
    child.once('error', (error) => {
      settle();
      reject(error);
    });
    child.once('close', (code, signal) => {
      settle();
      resolve({ code: code ?? undefined, signal: signal ?? undefined, timedOut, ...output });
    });
  });
}
