/** `nats-keys` as an operator runs it, on the keys of a test's NATS servers. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../../../dev/paths.ts';

export interface Ran {
  readonly code: number | null;
  /** Standard output, followed by standard error. */
  readonly out: string;
}

/** @param killWhen asked all the time; at `true` the command is killed */
export async function runKeys(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  killWhen?: () => boolean,
): Promise<Ran> {
  const child = spawn(process.execPath, [join(repositoryRoot, 'dist/ops/longshore.js'), 'nats-keys', ...args], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  let err = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  const timer = setInterval(() => {
    if (killWhen?.() === true) child.kill('SIGKILL');
  }, 1);
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, out: `${out}${err}` };
  } finally {
    clearInterval(timer);
  }
}

/** The keys of a name in `issued.json`, in the order of their issue. */
export const keysNamed = (folder: string, name: string): string[] =>
  (JSON.parse(readFileSync(join(folder, 'issued.json'), 'utf8')) as { name: string; key: string }[])
    .filter((each) => each.name === name)
    .map(({ key }) => key);
