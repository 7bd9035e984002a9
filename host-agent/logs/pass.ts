/**
 * One pass over the log of one of the engine's containers, from the cursor to its end, into a sink
 * that makes each block safe before the cursor moves past it.
 */
import { withAbort } from '../../lib/time/backoff.ts';
import type { Semaphore } from '../../lib/semaphore.ts';
import type { Engine } from '../docker/engine.ts';
import { EngineError } from '../docker/errors.ts';
import { BlockQueue, type Block } from './block.ts';
import { LineReader } from './lines.ts';
import type { LossCause } from '../metrics.ts';
import { Resume, sinceOf, type Cursor } from './resume.ts';

/** The longest wait of a line for a full block. */
const logBlockDelayMs = 200;

/**
 * Held-back lines count as new if the engine is silent for this long while the cursor's line has
 * not come.
 */
const logSearchQuietMs = 1000;

/**
 * Resolves when the block is safe, with the cause of a delay, if any; rejects only when the signal
 * aborts.
 */
export type Sink = (block: Block, signal: AbortSignal) => Promise<LossCause | undefined>;

export interface PassOptions {
  readonly cursor: Cursor;
  readonly nowMs: number;
  readonly sink: Sink;
  /** The cause in the entry for missing lines, which the tenant reads. */
  readonly lossCause: () => LossCause;
  readonly advance: (cursor: Cursor) => void;
  /** The number of times that lines are missing has grown by `count`. */
  readonly onGaps: (count: number) => void;
  readonly openings: Semaphore;
  readonly signal: AbortSignal;
}

export interface EnginePassOptions extends PassOptions {
  readonly engine: Pick<Engine, 'logs'>;
  /** `true` to continue for as long as the container runs. */
  readonly follow: boolean;
  /** The engine has answered, so it has this log. */
  readonly onAnswer: () => void;
}

export interface PassResult {
  readonly lines: number;
  /**
   * The cause that delayed blocks while the reader waited for them. The agent ends such a follower:
   * if the engine rotates the log twice meanwhile, the follower silently skips the files between. A
   * read without following opens them all.
   */
  readonly heldUpBy: LossCause | undefined;
}

/** The state that reader and sender of a pass share. */
export interface Progress {
  heldUpBy: LossCause | undefined;
}

/** Puts lines into the queue until the log ends. */
export type Read = (queue: BlockQueue, progress: Progress, signal: AbortSignal) => Promise<void>;

/** Sends the lines that `read` reads. If either fails, lines that were safe by then stay safe. */
export async function transfer(options: PassOptions, read: Read): Promise<PassResult> {
  const queue = new BlockQueue(options.cursor.seq, options.lossCause);
  const progress: Progress = { heldUpBy: undefined };
  const [reading, sent] = await withAbort([options.signal], (ending) => {
    const { signal } = ending;
    const sending = send(queue, options, progress, signal);
    sending.catch(() => ending.abort());
    // Lines that were read go out even if the reader fails.
    return Promise.allSettled([read(queue, progress, signal).finally(() => queue.end()), sending]);
  });
  if (sent.status === 'rejected') throw sent.reason;
  if (reading.status === 'rejected') throw reading.reason;
  return { lines: sent.value, heldUpBy: progress.heldUpBy };
}

/**
 * A pass that reads the lines through the engine.
 * @throws EngineError if the engine broke off; lines that were safe by then stay safe
 */
export async function enginePass(options: EnginePassOptions): Promise<PassResult> {
  const { engine, cursor, follow, signal } = options;
  const opened = await options.openings.acquire();
  // The engine sends nothing for a quiet log, even when it has found the place.
  const patience = setTimeout(opened, logSearchQuietMs);
  try {
    const since = sinceOf(cursor.place, options.nowMs);
    const { stream } = await engine.logs(cursor.dockerId, { follow, since }, signal);
    options.onAnswer();
    const resume = new Resume(cursor.place);
    return await transfer(options, async (queue, progress, either) => {
      either.addEventListener('abort', () => stream.destroy(), { once: true });
      if (either.aborted) stream.destroy();
      const isOver = () => follow && progress.heldUpBy !== undefined;
      try {
        await read(stream, resume, queue, isOver, opened, either);
      } finally {
        stream.destroy();
        if (resume.gaps > 0) options.onGaps(resume.gaps);
      }
    });
  } finally {
    clearTimeout(patience);
    opened();
  }
}

async function read(
  stream: AsyncIterable<Buffer>,
  resume: Resume,
  queue: BlockQueue,
  isOver: () => boolean,
  opened: () => void,
  signal: AbortSignal,
): Promise<void> {
  const reader = new LineReader();
  let quiet: NodeJS.Timeout | undefined;
  try {
    for await (const chunk of stream) {
      opened();
      clearTimeout(quiet);
      queue.push(reader.push(chunk).flatMap((line) => resume.push(line)));
      if (reader.failure !== undefined) break;
      if (resume.isWaiting) quiet = setTimeout(() => queue.push(resume.release()), logSearchQuietMs);
      while (queue.isFull && !isOver() && !signal.aborted) await queue.change(signal);
      if (signal.aborted || isOver()) return;
    }
  } catch (error) {
    if (signal.aborted) return;
    throw brokenOff('the stream broke off', error);
  } finally {
    clearTimeout(quiet);
  }
  queue.push(resume.release());
  if (reader.failure !== undefined) throw brokenOff(reader.failure);
  if (reader.isCut) throw brokenOff('the stream ended inside a frame');
}

/** A fault of this log, not of the engine; the monitor watches that. */
const brokenOff = (why: string, cause?: unknown): EngineError =>
  new EngineError('container logs', { kind: 'malformed' }, why, cause);

/** One block in flight: the next goes when this one is safe. */
async function send(queue: BlockQueue, options: PassOptions, progress: Progress, signal: AbortSignal): Promise<number> {
  let lines = 0;
  for (;;) {
    while (queue.isEmpty && !queue.isEnded && !signal.aborted) await queue.change(signal);
    if (!queue.isReady && !signal.aborted) await gather(queue, signal);
    const block = signal.aborted ? undefined : queue.take();
    if (block === undefined) return lines;
    const heldUpBy = await options.sink(block, signal);
    if (signal.aborted) return lines;
    if (heldUpBy !== undefined && queue.isFull) progress.heldUpBy = heldUpBy;
    options.advance({ dockerId: options.cursor.dockerId, place: block.place, seq: block.seq, at: block.at });
    lines += block.lines;
  }
}

/** A block goes out when it is full, or `logBlockDelayMs` after its first line. */
async function gather(queue: BlockQueue, signal: AbortSignal): Promise<void> {
  const endMs = performance.now() + logBlockDelayMs;
  for (;;) {
    const leftMs = endMs - performance.now();
    if (queue.isReady || signal.aborted || leftMs <= 0) return;
    await queue.change(signal, leftMs);
  }
}
