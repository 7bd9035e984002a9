/** A pass over the log of a container that reads the engine's files, without the engine's API. */
import { sleep, withAbort } from '../../../lib/time/backoff.ts';
import { limits } from '../../../schemas/limits.ts';
import type { BlockQueue } from '../block.ts';
import type { LossCause } from '../../metrics.ts';
import { transfer, type PassOptions, type PassResult, type Progress } from '../pass.ts';
import { createGrowth } from './growth.ts';
import { LogFile } from './log-file.ts';
import { KiB } from '../../../schemas/limits/units.ts';

/**
 * A file that grew by more than this since the last read is read again without waiting for an event
 * of the kernel.
 */
export const logFileBusyBytes = 16 * KiB;

export interface FilePassOptions extends PassOptions {
  readonly path: string;
  /** Aborts when the container is down: the pass ends with the file. */
  readonly ending: AbortSignal;
  /** Is called with the cause of a delay, at each change. */
  readonly onHeldUp: (cause: LossCause | undefined) => void;
  readonly onDamaged: (records: number) => void;
}

/**
 * @throws an error that `isUnreadable` recognises if its files cannot be read, or were removed
 * meanwhile
 */
export async function filePass(options: FilePassOptions): Promise<PassResult> {
  const file = await options.openings.run(() => LogFile.open(options.path, options.cursor, options.nowMs));
  try {
    return await transfer(options, (queue, progress, signal) => readOn(file, queue, options, progress, signal));
  } finally {
    await file.close();
  }
}

async function readOn(
  file: LogFile,
  queue: BlockQueue,
  options: FilePassOptions,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const { ending } = options;
  const growth = createGrowth(options.path);
  const readAll = async ({ signal: either }: AbortController): Promise<void> => {
    while (!signal.aborted) {
      // Read before the file: the file then contains all that the engine wrote until `ending`.
      const isLast = ending.aborted;
      const bytes = await readToEnd(file, queue, options, progress, signal);
      if (isLast) return;
      if (bytes > logFileBusyBytes) {
        growth.disarm();
        await sleep(limits.logFilePauseMs, either);
      } else if (!growth.arm()) {
        await growth.wait(either);
      }
    }
  };
  try {
    await withAbort([signal, ending], readAll);
  } finally {
    growth.disarm();
  }
}

/** Resolves with the bytes of the lines that were read. */
async function readToEnd(
  file: LogFile,
  queue: BlockQueue,
  { onGaps, onDamaged, onHeldUp }: FilePassOptions,
  progress: Progress,
  signal: AbortSignal,
): Promise<number> {
  let bytes = 0;
  for (let lines = await file.read(); lines !== undefined && !signal.aborted; lines = await file.read()) {
    for (const line of lines) bytes += line.bytes;
    const { gaps, damaged } = file.takeFaults();
    if (gaps > 0) onGaps(gaps);
    if (damaged > 0) onDamaged(damaged);
    queue.push(lines);
    while (queue.isFull && !signal.aborted) await queue.change(signal);
    onHeldUp(progress.heldUpBy);
  }
  progress.heldUpBy = undefined;
  onHeldUp(undefined);
  return bytes;
}
