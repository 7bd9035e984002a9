/**
 * Resumes a container's log exactly after the last acknowledged line. The engine can return lines
 * since a time, but it writes two streams slightly out of order, so a time alone loses or repeats
 * lines: the agent asks from a little earlier, and skips everything up to that very line. Pure.
 */
import { timestamp } from '../../lib/time/timestamp.ts';
import { limits } from '../../schemas/limits.ts';
import type { FilePlace } from './files/place.ts';
import { microsOf, type Line, type Place } from './lines.ts';

/**
 * Greatest distance at which the two streams of one container are written out of order into the
 * engine's log.
 */
const logSkewMs = 2000;

/** The last safe line: its container on the engine, its place and its number. */
export interface Cursor {
  readonly dockerId: string;
  readonly place: Place | null;
  readonly seq: number;
  /** The position of the line in the engine's files, if it was read from one. */
  readonly at?: FilePlace | undefined;
}

/** The `since` of the Docker API: seconds and nanoseconds, inclusive; `"0"` is the beginning. */
export function sinceOf(place: Place | null, nowMs: number): string {
  const micros = sinceMicros(place, nowMs);
  return micros === undefined ? '0' : `${Math.floor(micros / 1_000_000)}.${fractionOf(micros)}000`;
}

/** The same time in the form of the engine's files; `undefined` means the beginning. */
export function sinceStamp(place: Place | null, nowMs: number): string | undefined {
  const micros = sinceMicros(place, nowMs);
  if (micros === undefined) return undefined;
  return `${timestamp(Math.floor(micros / 1000)).slice(0, 19)}.${fractionOf(micros)}000Z`;
}

const fractionOf = (micros: number): string => String(micros % 1_000_000).padStart(6, '0');

function sinceMicros(place: Place | null, nowMs: number): number | undefined {
  if (place === null) return undefined;
  const micros = microsOf(place.ts) - logSkewMs * 1000;
  // The clock was set back: new lines have earlier times than the cursor.
  return micros > nowMs * 1000 || micros <= 0 ? undefined : micros;
}

/** `true` if the line is the one at this place, or an earlier part of it. */
export const isUpTo = (line: Place, place: Place): boolean =>
  line.ts === place.ts && line.stream === place.stream && line.nth <= place.nth;

const same = (left: Place, right: Place): boolean =>
  left.ts === right.ts && left.stream === right.stream && left.nth === right.nth;

export class Resume {
  readonly #cursor: Place | null;
  #phase: 'searching' | 'flowing';
  #held: Line[] = [];
  #heldBytes = 0;
  #gaps = 0;

  constructor(cursor: Place | null) {
    this.#cursor = cursor;
    this.#phase = cursor === null ? 'flowing' : 'searching';
  }

  /** Returns the lines that are new, in order. */
  push(line: Line): Line[] {
    if (this.#phase === 'flowing' || this.#cursor === null) return [line];
    if (same(line, this.#cursor)) {
      this.#phase = 'flowing';
      this.#held = [];
      return [];
    }
    const aheadMicros = microsOf(line.ts) - microsOf(this.#cursor.ts);
    if (aheadMicros <= 0 && line.ts <= this.#cursor.ts) return [];
    // The line is later than the cursor: it is new, or was written out of order just before the
    // cursor's line. Hold it.
    this.#held.push(line);
    this.#heldBytes += line.bytes;
    const isBeyond = aheadMicros > logSkewMs * 1000 || this.#heldBytes > limits.logQueueBytes;
    return isBeyond ? this.release() : [];
  }

  /**
   * The stream pauses and the cursor's line did not come: it was rotated away, so all held lines
   * are new. `lostSince` of the first is the time since which lines are lost.
   */
  release(): Line[] {
    if (this.#phase === 'flowing' || this.#held.length === 0) return [];
    const held = this.#held;
    this.#phase = 'flowing';
    this.#held = [];
    this.#gaps += 1;
    const [first] = held;
    if (first !== undefined && this.#cursor !== null) held[0] = { ...first, lostSince: this.#cursor.ts };
    return held;
  }

  /** `true` if every line from now on is new. */
  get isFlowing(): boolean {
    return this.#phase === 'flowing';
  }

  get isWaiting(): boolean {
    return this.#held.length > 0;
  }

  /** The number of times that the cursor's line was not found: lines may be lost there. */
  get gaps(): number {
    return this.#gaps;
  }
}
