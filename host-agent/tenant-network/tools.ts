/** Runs `ip`, `nft` and `nsenter`, each with a deadline. */
import { spawn } from 'node:child_process';
import { seconds } from '../../schemas/limits/units.ts';

const deadlineMs = 10 * seconds;
const outputBytes = 16 * 1024 * 1024;

export class ToolError extends Error {
  constructor(program: string, message: string) {
    super(`${program}: ${message}`);
    this.name = 'ToolError';
  }
}

export interface RunOptions {
  readonly input?: string;
  /** A namespace that the program gets as its descriptor 3. */
  readonly namespace?: number;
}

/** @returns the output @throws ToolError */
export function runTool(command: readonly string[], { input = '', namespace }: RunOptions = {}): Promise<string> {
  const [program = '', ...args] = command;
  return new Promise((resolve, reject) => {
    const stdio = ['pipe', 'pipe', 'pipe', ...(namespace === undefined ? [] : [namespace])] as const;
    const child = spawn(program, args, { stdio: [...stdio], timeout: deadlineMs, killSignal: 'SIGKILL' });
    const printed = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name]?.setEncoding('utf8').on('data', (text: string) => {
        printed[name] += text;
        if (printed[name].length > outputBytes) child.kill('SIGKILL');
      });
    }
    child.once('error', (error) => reject(new ToolError(program, error.message)));
    child.once('close', (code, signal) => {
      if (code === 0) resolve(printed.stdout);
      else if (signal === null) reject(new ToolError(program, printed.stderr.trim() || `exit code ${code}`));
      else reject(new ToolError(program, `no answer within ${deadlineMs} ms`));
    });
    // It may end without reading.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });
}
