/** tap in a process of its own, which ends with everything that the tests started. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { enter, markVariable, newMark, strike } from '../../dev/process/ledger.ts';
import { processesMarked } from '../../dev/process/proc.ts';
import { endProcesses } from '../../dev/process/reap.ts';
import { repositoryRoot } from '../../dev/paths.ts';
import { say, took } from '../../dev/steps.ts';
import { tellingLines, totalsOf, type Totals } from './tap-stream.ts';

/** Ends a file that hangs; on a slow machine a file may take long. */
const fileTimeoutS = 900;
const interruptGraceMs = 10_000;

export interface Verdict {
  readonly totals: Totals;
  readonly exitCode: number;
}

/** Runs compiled test files under tap, and prints a line for each file. */
export async function runTap(files: readonly string[], env: NodeJS.ProcessEnv, stopped: AbortSignal): Promise<Verdict> {
  const mark = newMark();
  // The test processes inherit the mark; when this process is killed, its guard ends them, and
  // theirs their servers.
  enter({ kind: 'server', id: mark, name: 'tap', graceMs: interruptGraceMs });
  const tap = join(repositoryRoot, 'node_modules/.bin/tap');
  const child = spawn(process.execPath, [tap, 'run', '--reporter=tap', `--timeout=${fileTimeoutS}`, ...files], {
    cwd: repositoryRoot,
    env: { ...env, [markVariable]: mark },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  const everyTest = (): ReturnType<typeof processesMarked> => processesMarked(markVariable, mark);
  stopped.addEventListener('abort', () => void endProcesses(everyTest, interruptGraceMs), { once: true });

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
    // What an interrupt broke off is no failure to tell of.
    if (failed !== undefined && stopped.aborted) return;
    say(`${failed === undefined ? '✓' : '✗'} ${name}.ts … ${took(Number(ms))}`);
    if (failed !== undefined) for (const telling of tellingLines(lines)) process.stdout.write(`${telling}\n`);
    lines = [];
  });
  const exitCode = await new Promise<number>((resolve) => {
    child.once('error', () => resolve(127));
    child.once('close', (code) => resolve(code ?? 1));
  });
  await endProcesses(everyTest, 1_000);
  strike(mark);
  if (exitCode !== 0 && totals.failed === 0 && !stopped.aborted) {
    process.stdout.write(`${tellingLines(lines).join('\n')}\n`);
    totals = { ...totals, failed: 1 };
  }
  return { totals, exitCode };
}
