/** Runs tap in a child process and ends everything that the tests started. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { enter, markVariable, newMark, strike } from '../../dev/process/ledger.ts';
import { processesMarked } from '../../dev/process/proc.ts';
import { endProcesses } from '../../dev/process/reap.ts';
import { repositoryRoot } from '../../dev/paths.ts';
import { say, took } from '../../dev/steps.ts';
import { failureLines, totalsOf, type Totals } from './tap-stream.ts';

/** Deadline of one test file; generous, because a file may take long on a slow machine. */
const fileTimeoutS = 900;
const interruptGraceMs = 10_000;

export interface Verdict {
  readonly totals: Totals;
  readonly exitCode: number;
}

/** Runs compiled test files under tap and prints one line for each file. */
export async function runTap(files: readonly string[], env: NodeJS.ProcessEnv, stopped: AbortSignal): Promise<Verdict> {
  const mark = newMark();
  // Test processes inherit the mark. If this process is killed, its guard ends them, and their
  // guards end their servers.
  enter({ kind: 'server', id: mark, name: 'tap', graceMs: interruptGraceMs });
  const tap = join(repositoryRoot, 'node_modules/.bin/tap');
  const child = spawn(process.execPath, [tap, 'run', '--reporter=tap', `--timeout=${fileTimeoutS}`, ...files], {
    cwd: repositoryRoot,
    env: { ...env, [markVariable]: mark },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  const testProcesses = (): ReturnType<typeof processesMarked> => processesMarked(markVariable, mark);
  stopped.addEventListener('abort', () => void endProcesses(testProcesses, interruptGraceMs), { once: true });

  let totals: Totals = { passed: 0, failed: 0, skipped: 0 };
  let lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    totals = totalsOf(line) ?? totals;
    const result = /^(not )?ok \d+ - dist\/(.*)\.js(?: # time=([\d.]+)ms)?/.exec(line);
    if (result === null) {
      lines.push(line);
      return;
    }
    const [, failed, name = '', ms = '0'] = result;
    // A test file that an interrupt ended has not failed.
    if (failed !== undefined && stopped.aborted) return;
    say(`${failed === undefined ? '✓' : '✗'} ${name}.ts … ${took(Number(ms))}`);
    if (failed !== undefined) for (const text of failureLines(lines)) process.stdout.write(`${text}\n`);
    lines = [];
  });
  const exitCode = await new Promise<number>((resolve) => {
    child.once('error', () => resolve(127));
    child.once('close', (code) => resolve(code ?? 1));
  });
  await endProcesses(testProcesses, 1_000);
  strike(mark);
  if (exitCode !== 0 && totals.failed === 0 && !stopped.aborted) {
    process.stdout.write(`${failureLines(lines).join('\n')}\n`);
    totals = { ...totals, failed: 1 };
  }
  return { totals, exitCode };
}
