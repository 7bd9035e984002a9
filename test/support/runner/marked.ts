/** Marks the processes of a test run, so that none of them outlives the run. */
import { enter, markVariable, newMark, strike } from '../../../dev/process/ledger.ts';
import { processesMarked } from '../../../dev/process/proc.ts';
import { endProcesses } from '../../../dev/process/reap.ts';

const interruptGraceMs = 10_000;

/**
 * Calls `work` with an environment variable for the processes that it starts; their descendants
 * inherit it. Marked processes are ended when `work` ends, when `stopped` aborts, or when this
 * process is killed.
 */
export async function withMarkedProcesses<T>(
  stopped: AbortSignal,
  work: (mark: NodeJS.ProcessEnv) => Promise<T>,
): Promise<T> {
  const mark = newMark();
  enter({ kind: 'server', id: mark, name: 'tests', graceMs: interruptGraceMs });
  const end = (graceMs: number): Promise<void> => endProcesses(() => processesMarked(markVariable, mark), graceMs);
  const onStop = (): void => void end(interruptGraceMs);
  stopped.addEventListener('abort', onStop, { once: true });
  try {
    return await work({ [markVariable]: mark });
  } finally {
    stopped.removeEventListener('abort', onStop);
    await end(1_000);
    strike(mark);
  }
}
