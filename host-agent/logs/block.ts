/**
 * Lines on their way from a reader to a sender, bounded in bytes: a full queue makes the reader wait, and with it the
 * engine, whose rotated files are the ring that holds what is not sent yet.
 */
import { limits } from '../../schemas/limits.ts';
import type { LogBlock, LogEntry } from '../../schemas/log.ts';
import { createLatch } from '../latch.ts';
import { nextSeq, type Line, type Place } from './lines.ts';

export interface Block {
  readonly lines: LogEntry[];
  /** Of its last line: what the cursor becomes when the block is safe. */
  readonly place: Place;
  readonly seq: number;
}

export const encodeBlock = ({ lines }: Block): string => JSON.stringify({ v: 1, lines } satisfies LogBlock);

export class BlockQueue {
  #seq: number;
  #lines: Line[] = [];
  #bytes = 0;
  #isEnded = false;
  readonly #changed = createLatch();

  constructor(afterSeq: number) {
    this.#seq = afterSeq;
  }

  get isFull(): boolean {
    return this.#bytes >= limits.logQueueBytes;
  }

  push(lines: readonly Line[]): void {
    if (lines.length === 0) return;
    for (const line of lines) {
      this.#lines.push(line);
      this.#bytes += line.bytes + lineOverheadBytes;
    }
    this.#changed.wake();
  }

  /** No more lines come. */
  end(): void {
    this.#isEnded = true;
    this.#changed.wake();
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  get isEmpty(): boolean {
    return this.#lines.length === 0;
  }

  /** Enough for a block, or the end: no need to wait for more. */
  get isReady(): boolean {
    return this.#isEnded || this.#bytes >= limits.logBlockBytes || this.#lines.length >= limits.logBlockLines;
  }

  /** Resolves at the next push, take or end, or after `ms`. */
  change(signal: AbortSignal, ms?: number): Promise<void> {
    return this.#changed.wait(ms, signal);
  }

  /** The next block, of at most `logBlockLines` lines and about `logBlockBytes`. */
  take(): Block | undefined {
    const count = this.#countForBlock();
    const taken = this.#lines.splice(0, count);
    const last = taken.at(-1);
    if (last === undefined) return undefined;
    const lines: LogEntry[] = taken.map(({ ts, stream, text, bytes }) => {
      this.#seq = nextSeq(this.#seq, ts);
      this.#bytes -= bytes + lineOverheadBytes;
      return { ts, stream, line: text, seq: this.#seq };
    });
    this.#changed.wake();
    return { lines, place: { ts: last.ts, stream: last.stream, nth: last.nth }, seq: this.#seq };
  }

  #countForBlock(): number {
    let bytes = 0;
    let count = 0;
    for (const line of this.#lines) {
      bytes += line.bytes + lineOverheadBytes;
      if (count > 0 && (bytes > limits.logBlockBytes || count >= limits.logBlockLines)) break;
      count += 1;
    }
    return count;
  }
}

/** Timestamp, stream and number of a line, as JSON. */
const lineOverheadBytes = 90;
