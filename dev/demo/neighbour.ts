/**
 * A second demo container of `npm start`, which the first one reaches by its name through the
 * network of their tenant.
 */
import { join } from 'node:path';
import { sleep } from '../../lib/time/backoff.ts';
import { repositoryRoot } from '../paths.ts';
import { run } from '../process/run.ts';
import type { Stack } from '../stack/stack.ts';
import { declareDemo, demoName } from './container.ts';

export const neighbourName = 'store';
const askMs = 20_000;
const pollMs = 500;
const program = join(repositoryRoot, 'dist/dev/longshore.js');
const question = `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 3 ${neighbourName} 8080`;
/** Of the command line, for a person to type. */
export const neighbourCommand = `exec ${demoName} sh -c "${question}"`;

export const declareNeighbour = (stack: Stack) => declareDemo(stack, neighbourName);

/** Asks from within the first container until the second answers. @returns text about the answer */
export async function askNeighbour(profiles: string, signal: AbortSignal): Promise<string> {
  const endMs = performance.now() + askMs;
  const env = { ...process.env, LONGSHORE_CONFIG: profiles };
  for (;;) {
    const words = [program, 'exec', demoName, '--', 'sh', '-c', question];
    const { stdout, stderr } = await run(process.execPath, words, { deadlineMs: askMs, env });
    const [, page] = /<h1>(.*)<\/h1>/.exec(stdout) ?? [];
    if (page !== undefined) return `${demoName} reaches ${neighbourName} by its name: ${page}`;
    if (performance.now() > endMs)
      return `${demoName} does not reach ${neighbourName} by its name: ${(stderr || stdout).trim()}`;
    await sleep(pollMs, signal);
    signal.throwIfAborted();
  }
}
