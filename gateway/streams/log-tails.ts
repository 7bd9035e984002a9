/**
 * The newest lines of each host and container that were read lately. The lines of a container only
 * grow at their end, so a reader that has the last ones asks only what came after them, which is
 * mostly nothing. Purges and a restore of the stream break that rule, so after a few seconds a tail
 * is read from the stream again.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/time/clock.ts';
import { limits } from '../../schemas/limits.ts';
import { newestOf, type LogLine } from './log-lines.ts';

export interface LogTail {
  /** Oldest first, each number once. */
  readonly lines: readonly LogLine[];
  /** Whether no older lines are in the stream. */
  readonly isWhole: boolean;
  /** Position in the stream to read from next. */
  readonly next: number;
}

interface Kept extends LogTail {
  /** When all of it was read from the stream: a time of the monotonic clock. */
  readonly readAtMs: number;
}

const sizeOf = ({ lines }: LogTail): number =>
  lines.reduce((sum, { json }) => sum + json.length, 0) + (lines.length + 1) * limits.logTailLineBytes;

/** The tail with lines that were read after it. Pure. */
export function longer(tail: LogTail, lines: readonly LogLine[], next: number): LogTail {
  const all = newestOf([...tail.lines, ...lines], Infinity);
  const kept = newestOf(all, limits.logsMax);
  return { lines: kept, isWhole: tail.isWhole && kept.length === all.length, next };
}

export class LogTails {
  readonly #clock: Clock;
  readonly #kept = new LRUCache<string, Kept>({
    max: limits.logTails,
    maxSize: limits.logTailBytes,
    sizeCalculation: sizeOf,
  });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A tail with the newest `limit` lines as of a few seconds ago. */
  of(subject: string, limit: number): LogTail | undefined {
    const kept = this.#kept.get(subject);
    if (kept === undefined || this.#clock.monotonicMs() - kept.readAtMs >= limits.logTailFreshMs) return undefined;
    return kept.isWhole || kept.lines.length >= limit ? kept : undefined;
  }

  /** Keeps what was read from the stream from `startMs` on. */
  keep(subject: string, tail: LogTail, startMs: number): void {
    this.#kept.set(subject, { ...tail, readAtMs: startMs });
  }

  /** Keeps what replaces a tail; what is old in it stays as old. */
  replace(subject: string, before: LogTail, tail: LogTail): void {
    const kept = this.#kept.get(subject);
    if (kept === before) this.#kept.set(subject, { ...tail, readAtMs: kept.readAtMs });
  }
}
