/** Runs test files in a few worker processes, each of which runs one file after another. */
import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { repositoryRoot } from '../../../dev/paths.ts';
import { took } from '../../../dev/steps.ts';
import { within } from '../../../lib/time/backoff.ts';
import { withMarkedProcesses } from './marked.ts';
import { oneForEachProcessor, runAsRoomAllows } from './room.ts';
import {
  none,
  oneFailed,
  sayResult,
  sum,
  totalsOfFile,
  type Outcome,
  type RunOptions,
  type Totals,
} from './tap-stream.ts';

const workerPath = join(repositoryRoot, 'dist/test/support/runner/batch-worker.js');
const startDeadlineMs = 120_000;
const fileDeadlineMs = 900_000;
/** Time for a worker to exit after its last file. */
const endGraceMs = 20_000;

interface WorkerOutcome extends Outcome {
  /** True if the file ended its worker, or the worker was killed. */
  readonly workerGone: boolean;
}

interface Worker {
  run(path: string): Promise<WorkerOutcome>;
  /** Ends the worker after its last file. */
  end(): Promise<{ readonly ended: boolean; readonly lines: readonly string[] }>;
}

function startWorker(name: string, env: NodeJS.ProcessEnv, deadlineMs: number): Worker {
  const child: ChildProcess = spawn(process.execPath, ['--enable-source-maps', workerPath, name], {
    cwd: repositoryRoot,
    // Each file has a deadline; tap's own would count from the start of the worker.
    env: { ...env, TAP_TIMEOUT: '0' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error('the worker has no pipes');
  // A write to a worker that has ended fails; its exit code says why.
  stdin.on('error', () => undefined);
  const exited = new Promise<number>((resolve) => {
    child.once('error', () => resolve(127));
    child.once('close', (code) => resolve(code ?? 1));
  });
  let lines: string[] = [];
  let settle: (totals: Totals) => void = () => undefined;
  const nextTotals = (): Promise<Totals> => new Promise((resolve) => (settle = resolve));
  const ready = nextTotals();
  createInterface({ input: stdout }).on('line', (line) => {
    const totals = totalsOfFile(line);
    if (totals === undefined) lines.push(line);
    else settle(totals);
  });
  const failed = (why: string): WorkerOutcome => ({ totals: oneFailed, lines: [...lines, why], workerGone: true });
  return {
    run: async (path) => {
      const ended = exited.then((code) => failed(`the file ended its process with exit code ${code}`));
      await within(Promise.race([ready, exited]), startDeadlineMs, 'the start of a test process');
      lines = [];
      // Processes and state of a failed file must not harm the next one.
      const outcome = nextTotals().then((totals) => {
        const workerGone = totals.failed > 0 && child.kill('SIGKILL');
        return { totals, lines, workerGone };
      });
      stdin.write(`${path}\n`);
      try {
        return await within(Promise.race([outcome, ended]), deadlineMs, path);
      } catch {
        child.kill('SIGKILL');
        return failed(`the file did not end within ${took(deadlineMs)}`);
      }
    },
    end: async () => {
      lines = [];
      stdin.end();
      const code = await within(exited, endGraceMs, 'the end of a worker').catch(() => undefined);
      child.kill('SIGKILL');
      const why = code === undefined ? 'a file left something running' : `exit code ${code}`;
      return { ended: code === 0, lines: [...lines, why] };
    },
  };
}

/**
 * Runs compiled test files in workers, by default one for each processor, and reports each file.
 */
export function runBatches(
  files: readonly string[],
  env: NodeJS.ProcessEnv,
  stopped: AbortSignal,
  { processes = oneForEachProcessor, deadlineMs = fileDeadlineMs, report = sayResult }: RunOptions = {},
): Promise<Totals> {
  const waiting = [...files];
  let workers = 0;
  return withMarkedProcesses(stopped, async (mark) => {
    /** Runs files in one worker, until none is left or a file hangs or ends the worker. */
    const runBatch = async (): Promise<Totals> => {
      const worker = startWorker(String(++workers), { ...env, ...mark }, deadlineMs);
      let totals = none;
      for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
        const startMs = performance.now();
        const outcome = await worker.run(path);
        if (stopped.aborted) return totals;
        totals = sum(totals, outcome.totals);
        report({ path, failed: outcome.totals.failed > 0, ms: performance.now() - startMs }, outcome.lines);
        if (outcome.workerGone) return totals;
      }
      const startMs = performance.now();
      const { lines, ended } = await worker.end();
      // A failed test makes its worker fail, too; it is counted already.
      if (ended || totals.failed > 0 || stopped.aborted) return totals;
      report({ path: 'end of a test process', failed: true, ms: performance.now() - startMs }, lines);
      return sum(totals, oneFailed);
    };
    let all = none;
    const runLane = async (): Promise<void> => {
      while (waiting.length > 0 && !stopped.aborted) {
        const totals = await runBatch();
        all = sum(all, totals);
      }
    };
    await runAsRoomAllows(Array<typeof runLane>(processes.most).fill(runLane), processes);
    return all;
  });
}
