/**
 * The stream AUDIT, read from its end. A subject cannot be read backwards, so a page looks at
 * windows of the stream, one before the other; where they have little of the subject, they grow.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import type { Clock } from '../../lib/time/clock.ts';
import { DecodeError, decoder } from '../../lib/decode.ts';
import type { ReadMessage } from '../../lib/nats/direct-reads.ts';
import { createPlaces } from '../../lib/places.ts';
import Type from 'typebox';
import { AuditLine } from '../../schemas/api/audit/line.ts';
import type { AuditCursor } from '../../schemas/api/cursor.ts';
import { limits } from '../../schemas/limits.ts';
import { days } from '../../schemas/limits/units.ts';
import { SubjectReader } from '../streams/subject-reader.ts';

/** Messages of the stream that one request looks at: filters may match few of them. */
const auditReadMessages = 2048;
/** Such requests at a time. */
const auditReadsAtOnce = 8;
/** Positions of the stream that a page looks at first; then more and more. */
const auditWindow = 256;
/** A line is in the stream by then, however long the stream was away. */
const auditLateMs = 1 * days;

const decodeLines = decoder(Type.Array(Type.Object(AuditLine.properties)));

/** A line, and its position in the stream; undefined: only its owner has it yet. */
export interface PlacedLine {
  readonly line: AuditLine;
  readonly seq: number | undefined;
}

export interface AuditRange {
  readonly subject: string;
  /** Times in milliseconds; a line at `toMs` is not among them. */
  readonly fromMs: number | undefined;
  readonly toMs: number | undefined;
  readonly cursor: AuditCursor | undefined;
  readonly matches: (placed: PlacedLine) => boolean;
  /** How many lines are wanted. */
  readonly wanted: number;
}

export interface AuditFound {
  /** Newest first as they lie in the stream; all of the subject that match down to `next`. */
  readonly lines: readonly PlacedLine[];
  /** The newest position that was not looked at; undefined: there is none. */
  readonly next: number | undefined;
}

/** How much a window grows, and how many messages of the subject are many for one. */
const growth = 8;
const many = 512;
const few = 32;

export class AuditReader {
  readonly #reader: SubjectReader;
  readonly #onMalformed: () => void;
  readonly #places = createPlaces(auditReadsAtOnce);

  constructor(nc: Promise<NatsConnection>, clock: Clock, onMalformed: () => void) {
    this.#reader = new SubjectReader(nc, 'audit', clock);
    this.#onMalformed = onMalformed;
  }

  find(range: AuditRange): Promise<AuditFound> {
    return this.#places.run(() => this.#find(range));
  }

  async #find(range: AuditRange): Promise<AuditFound> {
    const { subject, wanted } = range;
    const [floor, ceiling] = await Promise.all([this.#floorOf(range), this.#ceilingOf(range)]);
    let lines: readonly PlacedLine[] = [];
    let high = ceiling;
    let width: number = auditWindow;
    let above = ceiling <= floor ? 0 : await this.#reader.countFrom(subject, ceiling);
    for (let looked = 0; high > floor && lines.length < wanted && looked < auditReadMessages;) {
      const low = Math.max(floor, high - width);
      const from = await this.#reader.countFrom(subject, low);
      const inside = from - above;
      if (inside > many && high - low > auditWindow) {
        width = Math.max(auditWindow, Math.floor((high - low) / growth));
        continue;
      }
      if (inside > 0) lines = [...lines, ...(await this.#linesIn(range, low, high))];
      looked += Math.max(inside, 1);
      above = from;
      high = low;
      if (inside < few) width *= growth;
    }
    return { lines, next: high > floor ? high - 1 : undefined };
  }

  /** The first position that may have a line of the range. */
  async #floorOf({ subject, fromMs }: AuditRange): Promise<number> {
    if (fromMs === undefined) return this.#reader.firstOf(subject);
    // A line is stored after its time, but clocks differ.
    return this.#reader.firstSince(subject, fromMs - limits.auditAheadMs);
  }

  /** The first position that certainly has none. */
  async #ceilingOf({ subject, toMs, cursor }: AuditRange): Promise<number> {
    if (cursor?.seq !== undefined) return cursor.seq + 1;
    const end = ((await this.#reader.last(subject))?.sequence ?? 0) + 1;
    if (toMs === undefined) return end;
    return Math.min(end, await this.#reader.firstSince(subject, toMs + auditLateMs));
  }

  async #linesIn(range: AuditRange, low: number, high: number): Promise<readonly PlacedLine[]> {
    const lines: PlacedLine[] = [];
    for (let seq = low; seq < high;) {
      const { messages, pending } = await this.#reader.page(range.subject, seq);
      for (const message of messages) if (message.sequence < high) lines.push(...this.#matching(range, message));
      const last = messages.at(-1);
      if (pending === 0 || last === undefined) break;
      seq = last.sequence + 1;
    }
    return lines.reverse();
  }

  #matching({ matches }: AuditRange, { sequence: seq, data }: ReadMessage): PlacedLine[] {
    try {
      return decodeLines(data)
        .map((line) => ({ line, seq }))
        .filter(matches);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      this.#onMalformed();
      return [];
    }
  }
}
