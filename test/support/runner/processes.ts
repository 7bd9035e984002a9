/**
 * Runs each test file in a process of its own. Not with `tap run`: its loaders take a second of
 * each test file, and as much of each program that a test starts.
 */
import { repositoryRoot } from '../../../dev/paths.ts';
import { run } from '../../../dev/process/run.ts';
import { took } from '../../../dev/steps.ts';
import { withMarkedProcesses } from './marked.ts';
import { oneForEachProcessor, runAsRoomAllows } from './room.ts';
import { none, oneFailed, sayResult, sum, totalsOf, type Outcome, type RunOptions, type Totals } from './tap-stream.ts';

/** Deadline of one test file; generous, because a file may take long on a slow machine. */
const fileDeadlineMs = 1_800_000;
/** tap ends a test before that, and says which. */
const tapMarginMs = 60_000;

async function runFile(path: string, env: NodeJS.ProcessEnv, deadlineMs: number): Promise<Outcome> {
  const { code, timedOut, stdout, stderr } = await run(process.execPath, ['--enable-source-maps', path], {
    cwd: repositoryRoot,
    env: { TAP_TIMEOUT: String(Math.max(1, (deadlineMs - tapMarginMs) / 1000)), ...env },
    deadlineMs,
  });
  const written = stdout.split('\n');
  const lines = [...stderr.split('\n'), ...written];
  const totals = written.map(totalsOf).findLast((found) => found !== undefined) ?? none;
  const { passed, failed, skipped } = totals;
  const fail = (why: string): Outcome => ({ totals: sum(totals, oneFailed), lines: [...lines, why] });
  if (timedOut) return fail(`the file did not end within ${took(deadlineMs)}`);
  if (failed > 0) return { totals, lines };
  if (code !== 0) return fail(`the file ended with exit code ${code ?? null}`);
  return passed + skipped === 0 ? fail(`${path} has no test`) : { totals, lines };
}

/** Runs compiled test files and prints a line for each. */
export function runProcesses(
  files: readonly string[],
  env: NodeJS.ProcessEnv,
  stopped: AbortSignal,
  { processes = oneForEachProcessor, deadlineMs = fileDeadlineMs, report = sayResult }: RunOptions = {},
): Promise<Totals> {
  return withMarkedProcesses(stopped, async (mark) => {
    let totals = none;
    const jobOf = (path: string) => async (): Promise<void> => {
      if (stopped.aborted) return;
      const startMs = performance.now();
      const outcome = await runFile(path, { ...env, ...mark }, deadlineMs);
      // A test file that an interrupt ended has not failed.
      if (stopped.aborted) return;
      totals = sum(totals, outcome.totals);
      report({ path, failed: outcome.totals.failed > 0, ms: performance.now() - startMs }, outcome.lines);
    };
    await runAsRoomAllows(files.map(jobOf), processes);
    return totals;
  });
}
