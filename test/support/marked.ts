/** Processes that bear a mark, so that nothing which a test started outlives the run. */
import { enter, markVariable, newMark, strike } from '../../dev/process/ledger.ts';
import { processesMarked } from '../../dev/process/proc.ts';
import { endProcesses } from '../../dev/process/reap.ts';

const interruptGraceMs = 10_000;

/**
 * Runs `work` with a variable for the environment of its processes. Their descendants inherit it;
 * all that are left end with the work, when `stopped` aborts, or after this process was killed.
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
