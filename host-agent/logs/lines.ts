/**
 * Turns the engine's log frames into lines. With `timestamps=1` each frame is one record of the
 * engine's log: a timestamp, a space, and at most 16 KiB of a line, with its newline unless the
 * line continues in the next record of the same stream. Pure, except that it keeps the bytes of a
 * character cut in two.
 */
import { limits } from '../../schemas/limits.ts';
import { Demultiplexer, type Frame } from '../docker/demux.ts';
import type { FilePlace } from './files/place.ts';

/**
 * Times of lines remembered for each container (64 KiB): more than an engine repeats after a
 * reconnect.
 */
const logTimesRemembered = 8192;

export type StreamName = Frame['stream'];

/** The place of a line in the log of one of the engine's containers. */
export interface Place {
  /** As the engine wrote it: RFC 3339, UTC, nanoseconds. */
  readonly ts: string;
  readonly stream: StreamName;
  /**
   * The index among lines with the same timestamp and stream, which are parts of one long line.
   */
  readonly nth: number;
}

export interface Line extends Place {
  readonly text: string;
  readonly bytes: number;
  /** Lines between this time and this line are lost. */
  readonly lostSince?: string;
  /** The position behind this line, if it was read from a file. */
  readonly at?: FilePlace;
}

const stamped = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/;
const stampBytes = 40;
const epochStamp = '1970-01-01T00:00:00.000000000Z';

/** Many lines share a second, so its parsed form is cached: its text, and ms since 1970. */
let second = { text: '', ms: 0 };
const secondChars = 19;
/** With nine digits after the point, as engines write it. */
const stampChars = 30;

/** Microseconds since 1970; below 2^53 until the year 2255. */
export function microsOf(ts: string): number {
  if (ts.length === stampChars && second.text !== '' && ts.startsWith(second.text)) {
    const micros = Number(ts.slice(secondChars + 1, secondChars + 7));
    if (micros >= 0) return second.ms * 1000 + micros;
  }
  const [, seconds, fraction = ''] = stamped.exec(ts) ?? [];
  if (seconds === undefined) return 0;
  second = { text: seconds, ms: Date.parse(`${seconds}Z`) };
  return second.ms * 1000 + Number(fraction.padEnd(6, '0').slice(0, 6));
}

/**
 * The timestamp with nine digits after the point: the engine drops zeros at the end in its files,
 * but not in its answers. `undefined` if the text is no such timestamp.
 */
export function fullStamp(ts: string): string | undefined {
  if (ts.length === stampChars && stamped.test(ts)) return ts;
  const [, seconds, fraction = ''] = stamped.exec(ts) ?? [];
  return seconds === undefined ? undefined : `${seconds}.${fraction.padEnd(9, '0')}Z`;
}

/**
 * The same line gets the same number after any restart: it depends only on the previous line and
 * the engine's timestamp.
 */
export const nextSeq = (previous: number, ts: string): number => Math.max(previous + 1, microsOf(ts));

/** The number of a mark before a line; the line's own number does not depend on the mark. */
export const seqBefore = (previous: number, ts: string): number => Math.max(previous + 1, microsOf(ts) - 1);

/** Turns chunks of the raw stream into lines; one for each pass over a container's log. */
export class LineReader {
  readonly #demultiplexer = new Demultiplexer(limits.logFrameBytes);
  readonly #streams = { stdout: new StreamState(), stderr: new StreamState() };

  push(chunk: Uint8Array): Line[] {
    return this.#demultiplexer.push(chunk).flatMap((frame) => this.#streams[frame.stream].lines(frame));
  }

  /** The engine's message about why it ended the stream early. */
  get failure(): string | undefined {
    return this.#demultiplexer.failure;
  }

  /** `true` if the stream ended in the middle of a frame. */
  get isCut(): boolean {
    return this.#demultiplexer.pendingBytes > 0;
  }
}

class StreamState {
  #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  #ts = epochStamp;
  #nth = 0;
  #newest = { ts: epochStamp, nth: 0 };
  /** `true` if the last record had no newline: its line continues in the next. */
  #isOpen = false;
  readonly #recent: number[] = [];
  #given = 0;

  lines({ stream, payload }: Frame): Line[] {
    const space = payload.subarray(0, stampBytes).indexOf(0x20);
    const stamp = space < 0 ? '' : payload.toString('latin1', 0, space);
    const isStamped = stamped.test(stamp);
    const ts = isStamped ? stamp : this.#ts;
    const content = isStamped ? payload.subarray(space + 1) : payload;
    const ends = content.length > 0 && content[content.length - 1] === 0x0a;
    const body = ends ? content.subarray(0, -1) : content;
    // A line of exactly 16 KiB ends with a record that holds only the newline: no other line.
    const isOnlyEnd = ends && body.length === 0 && this.#isOpen && ts === this.#ts;
    this.#isOpen = !ends;
    if (isOnlyEnd) {
      // If the line ended inside a character, its bytes become replacement characters.
      const text = this.#decoder.decode();
      return text === '' || !this.#isNew(ts) ? [] : [{ ts, stream, nth: this.#nth, text, bytes: 0 }];
    }
    const pieces = split(body, limits.logLineBytes);
    return pieces.flatMap((piece, index) => {
      if (!this.#isNew(ts)) return [];
      const isLast = ends && index === pieces.length - 1;
      const text = this.#decoder.decode(piece, { stream: !isLast });
      return [{ ts, stream, nth: this.#nth, text, bytes: piece.length }];
    });
  }

  /** Moves on to the next line, of this time. @returns `true` if it is new */
  #isNew(ts: string): boolean {
    this.#nth = ts === this.#ts ? this.#nth + 1 : 0;
    this.#ts = ts;
    if (this.#isRepeated()) return false;
    this.#note();
    return true;
  }

  /**
   * An engine that rotates a followed log may send the beginning of the new file twice (Docker
   * 20.10: about twenty lines at 5,000 a second, more where it is behind). A line with an earlier
   * time that was there before is such a repetition; with a new time, the clock was set back.
   */
  #isRepeated(): boolean {
    const { ts, nth } = this.#newest;
    if (this.#ts > ts) return false;
    return this.#ts === ts ? this.#nth <= nth : this.#recent.includes(withinMinute(this.#ts));
  }

  #note(): void {
    if (this.#ts !== this.#newest.ts) this.#recent[this.#given++ % logTimesRemembered] = withinMinute(this.#ts);
    this.#newest = { ts: this.#ts, nth: this.#nth };
  }
}

/** Seconds, to the nanosecond: `2026-01-02T03:04:05.123456789Z` → 5.123456789. */
const withinMinute = (ts: string): number => Number(ts.slice(17, -1));

function split(bytes: Buffer, maxBytes: number): Buffer[] {
  const pieces: Buffer[] = [];
  for (let from = 0; from === 0 || from < bytes.length; from += maxBytes) {
    pieces.push(bytes.subarray(from, from + maxBytes));
  }
  return pieces;
}
