/**
 * One pass over the log of one of the engine's containers, from the cursor to its end, into a sink
 * that makes each block safe before the cursor moves past it.
 */
import type { Engine } from '../docker/engine.ts';
import { EngineError } from '../docker/errors.ts';
import { limits } from '../../schemas/limits.ts';
import { BlockQueue, type Block } from './block.ts';
import { LineReader } from './lines.ts';
import type { LossCause } from './loss.ts';
import { Resume, sinceOf, type Cursor } from './resume.ts';

/**
 * Resolves when the block is safe, with the cause of a delay, if any; rejects only when the signal
 * aborts.
 */
export type Sink = (block: Block, signal: AbortSignal) => Promise<LossCause | undefined>;

export interface PassOptions {
  readonly engine: Engine;
  readonly cursor: Cursor;
  /** Continue for as long as the container runs. */
  readonly follow: boolean;
  readonly nowMs: number;
  readonly sink: Sink;
  /** The cause that the tenant reads where lines are missing. */
  readonly lossCause: () => LossCause;
  readonly advance: (cursor: Cursor) => void;
  readonly signal: AbortSignal;
}

export interface PassResult {
  readonly lines: number;
  readonly gaps: number;
  /**
   * What delayed blocks while the reader waited for them. The agent ends such a follower: if the
   * engine rotates the log twice meanwhile, the follower silently skips the files between. A read
   * without following opens them all.
   */
  readonly heldUpBy: LossCause | undefined;
}

/** What reader and sender of a pass share. */
interface Progress {
  heldUpBy: LossCause | undefined;
}

/** @throws EngineError where the engine broke off; what was safe by then stays safe. */
export async function pass(options: PassOptions): Promise<PassResult> {
  const { engine, cursor, follow, signal } = options;
  const reply = await engine.logs(cursor.dockerId, { follow, since: sinceOf(cursor.place, options.nowMs) }, signal);
  const resume = new Resume(cursor.place);
  const queue = new BlockQueue(cursor.seq, options.lossCause);
  const progress: Progress = { heldUpBy: undefined };
  const failing = new AbortController();
  const either = AbortSignal.any([signal, failing.signal]);
  either.addEventListener('abort', () => reply.stream.destroy(), { once: true });

  const sending = send(queue, options, progress, either);
  sending.catch(() => failing.abort());
  // Lines that were read go out even if the reader fails.
  const [reading, sent] = await Promise.allSettled([
    read(reply.stream, resume, queue, () => follow && progress.heldUpBy !== undefined, either).finally(() =>
      queue.end(),
    ),
    sending,
  ]);
  reply.stream.destroy();
  if (sent.status === 'rejected') throw sent.reason;
  if (reading.status === 'rejected') throw reading.reason;
  return { lines: sent.value, gaps: resume.gaps, heldUpBy: progress.heldUpBy };
}

async function read(
  stream: AsyncIterable<Buffer>,
  resume: Resume,
  queue: BlockQueue,
  isOver: () => boolean,
  signal: AbortSignal,
): Promise<void> {
  const reader = new LineReader();
  let quiet: NodeJS.Timeout | undefined;
  try {
    for await (const chunk of stream) {
      clearTimeout(quiet);
      queue.push(reader.push(chunk).flatMap((line) => resume.push(line)));
      if (reader.failure !== undefined) break;
      if (resume.isWaiting) quiet = setTimeout(() => queue.push(resume.release()), limits.logSearchQuietMs);
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
    options.advance({ dockerId: options.cursor.dockerId, place: block.place, seq: block.seq });
    lines += block.lines;
  }
}

/** A block goes out when it is full, or `logBlockDelayMs` after its first line. */
async function gather(queue: BlockQueue, signal: AbortSignal): Promise<void> {
  const endMs = performance.now() + limits.logBlockDelayMs;
  for (;;) {
    const leftMs = endMs - performance.now();
    if (queue.isReady || signal.aborted || leftMs <= 0) return;
    await queue.change(signal, leftMs);
  }
}
