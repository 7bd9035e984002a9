/**
 * A queue of lines between a reader and a sender, bounded in bytes. A full queue makes the reader
 * wait, and with it the engine, whose rotated files buffer the lines not sent yet. Sizes count
 * encoded lines: a control character takes six bytes in JSON.
 */
import { limits } from '../../schemas/limits.ts';
import type { LogEntry } from '../../schemas/api/log.ts';
import { fill } from '../../lib/fill.ts';
import { createNotify } from '../../lib/notify.ts';
import type { FilePlace } from './files/place.ts';
import { nextSeq, seqBefore, type Line, type Place } from './lines.ts';
import type { LossCause } from '../metrics.ts';
import { lostBetween } from './loss.ts';

export interface Block {
  /** The encoded LogBlock. */
  readonly payload: string;
  readonly lines: number;
  /** The place of its last line; the cursor moves there when the block is safe. */
  readonly place: Place;
  readonly seq: number;
  /** The position of its last line in the engine's files, if it was read from one. */
  readonly at: FilePlace | undefined;
}

/** A line with its encoded text. */
interface Encoded {
  readonly line: Line;
  readonly text: string;
  /** A mark to put before it in the same block. */
  readonly mark: string | undefined;
  readonly bytes: number;
}

const entryOf = (ts: string, stream: LogEntry['stream'], text: string, seq: number): string =>
  `{"ts":"${ts}","stream":"${stream}","line":${text},"seq":${seq}}`;
/** Bytes of an encoded line besides its timestamp and text, with the comma. */
const entryBytes = entryOf('', 'stdout', '', Number.MAX_SAFE_INTEGER).length + 1;

const envelope = (entries: readonly string[]): string => `{"v":1,"lines":[${entries.join(',')}]}`;
const envelopeBytes = envelope([]).length;

/** A block of one entry. */
export const blockOfOne = ({ ts, stream, line, seq }: LogEntry): string =>
  envelope([entryOf(ts, stream, JSON.stringify(line), seq)]);

export class BlockQueue {
  readonly #lossCause: () => LossCause;
  #seq: number;
  #lines: Encoded[] = [];
  #bytes = 0;
  #isEnded = false;
  readonly #changed = createNotify();

  constructor(afterSeq: number, lossCause: () => LossCause = () => 'late') {
    this.#seq = afterSeq;
    this.#lossCause = lossCause;
  }

  get isFull(): boolean {
    return this.#bytes >= limits.logQueueBytes;
  }

  push(lines: readonly Line[]): void {
    if (lines.length === 0) return;
    for (const line of lines) {
      const encoded = this.#encode(line);
      this.#lines.push(encoded);
      this.#bytes += encoded.bytes;
    }
    this.#changed.notify();
  }

  /** Ends the queue: no more lines come. */
  end(): void {
    this.#isEnded = true;
    this.#changed.notify();
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  get isEmpty(): boolean {
    return this.#lines.length === 0;
  }

  /** `true` if there is enough for a block, or the end has come. */
  get isReady(): boolean {
    return this.#isEnded || this.#bytes >= limits.logBlockBytes || this.#lines.length >= limits.logBlockLines;
  }

  /** Resolves at the next push, take or end, or after `ms`. */
  change(signal: AbortSignal, ms?: number): Promise<void> {
    return this.#changed.wait(ms, signal);
  }

  /**
   * The next block, of at most `logBlockLines` entries and `logBlockBytes`, or of one line that
   * alone takes more.
   */
  take(): Block | undefined {
    const taken = this.#lines.splice(0, this.#countForBlock());
    const last = taken.at(-1);
    if (last === undefined) return undefined;
    const entries: string[] = [];
    for (const { line, text, mark, bytes } of taken) {
      this.#bytes -= bytes;
      if (mark !== undefined) {
        this.#seq = seqBefore(this.#seq, line.ts);
        entries.push(entryOf(line.ts, 'stderr', mark, this.#seq));
      }
      this.#seq = nextSeq(this.#seq, line.ts);
      entries.push(entryOf(line.ts, line.stream, text, this.#seq));
    }
    this.#changed.notify();
    const { ts, stream, nth, at } = last.line;
    return { payload: envelope(entries), lines: taken.length, place: { ts, stream, nth }, seq: this.#seq, at };
  }

  #countForBlock(): number {
    const bounds = { bytes: limits.logBlockBytes - envelopeBytes, items: limits.logBlockLines };
    return fill(this.#lines, bounds, (value) => ({
      value,
      bytes: value.bytes,
      items: value.mark === undefined ? 1 : 2,
    })).passed;
  }

  #encode(line: Line): Encoded {
    const text = JSON.stringify(line.text);
    const bytes = entryBytes + line.ts.length + Buffer.byteLength(text);
    if (line.lostSince === undefined) return { line, text, mark: undefined, bytes };
    const mark = JSON.stringify(lostBetween(line.lostSince, line.ts, this.#lossCause()));
    return { line, text, mark, bytes: bytes + entryBytes + line.ts.length + Buffer.byteLength(mark) };
  }
}
