/** Runs tap, which starts a process for each test file. */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { repositoryRoot } from '../../../dev/paths.ts';
import { withMarkedProcesses } from './marked.ts';
import { none, oneFailed, resultOfProcess, sayResult, sum, failureLines, totalsOf, type Totals } from './tap-stream.ts';

/** Deadline of one test file; generous, because a file may take long on a slow machine. */
const fileTimeoutS = 1800;

/** Half of the time a file waits, for engines and for what must not happen. */
const filesAtOnce = Math.ceil(availableParallelism() * 1.5);

/** Runs compiled test files under tap and prints one line for each file. */
export function runTap(files: readonly string[], env: NodeJS.ProcessEnv, stopped: AbortSignal): Promise<Totals> {
  let totals = none;
  // Without arguments tap would run every test file that it finds.
  if (files.length === 0) return Promise.resolve(totals);
  return withMarkedProcesses(stopped, async (mark) => {
    const tap = join(repositoryRoot, 'node_modules/.bin/tap');
    const options = ['--reporter=tap', `--jobs=${filesAtOnce}`, `--timeout=${fileTimeoutS}`];
    const child = spawn(process.execPath, [tap, 'run', ...options, ...files], {
      cwd: repositoryRoot,
      env: { ...env, ...mark },
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    });
    let lines: string[] = [];
    createInterface({ input: child.stdout }).on('line', (line) => {
      totals = totalsOf(line) ?? totals;
      const result = resultOfProcess(line);
      if (result === undefined) {
        lines.push(line);
        return;
      }
      // A test file that an interrupt ended has not failed.
      if (!result.failed || !stopped.aborted) sayResult(result, lines);
      lines = [];
    });
    const exitCode = await new Promise<number>((resolve) => {
      child.once('error', () => resolve(127));
      child.once('close', (code) => resolve(code ?? 1));
    });
    if (exitCode === 0 || totals.failed > 0 || stopped.aborted) return totals;
    process.stdout.write(`${failureLines(lines).join('\n')}\n`);
    return sum(totals, oneFailed);
  });
}
