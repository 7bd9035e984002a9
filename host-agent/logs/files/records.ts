/**
 * Turns the bytes of an engine's log file into lines (Docker's `json-file`: one JSON record a line,
 * each with at most 16 KiB of a line of the container). Pure.
 */
import Type, { type Static } from 'typebox';
import { DecodeError, decoder } from '../../../lib/decode.ts';
import { limits } from '../../../schemas/limits.ts';
import { fullStamp, type Line, type StreamName } from '../lines.ts';
import type { FilePlace, StreamPlace } from './place.ts';
import { KiB } from '../../../schemas/limits/units.ts';

/**
 * Bytes of a record of the engine's log files: a line of 16 KiB, each byte escaped, and labels of
 * its own.
 */
export const logRecordBytes = 256 * KiB;

const Record = Type.Object({ log: Type.String(), stream: Type.Enum(['stdout', 'stderr']), time: Type.String() });
type Record = Static<typeof Record>;
const decodeRecord = decoder(Record);
const decodeRecords = decoder(Type.Array(Record));

const newline = 0x0a;

export class RecordReader {
  #place: FilePlace;
  #rest: Buffer = Buffer.alloc(0);
  /** `true` after a record that is too long: bytes are skipped up to the next newline. */
  #isSkipping = false;
  #damaged = 0;

  constructor(place: FilePlace) {
    this.#place = place;
  }

  /** The position behind the last complete record. */
  get place(): FilePlace {
    return this.#place;
  }

  /** Records that could not be decoded, as after a crash of the machine. */
  get damaged(): number {
    return this.#damaged;
  }

  /** Continues at the beginning of another file. */
  startFile(file: string): void {
    if (this.#rest.length > 0 || this.#isSkipping) this.#damaged += 1;
    this.#rest = Buffer.alloc(0);
    this.#isSkipping = false;
    this.#place = { ...this.#place, file, offset: 0 };
  }

  push(chunk: Buffer): Line[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const ends = newlinesIn(bytes);
    const last = ends.at(-1);
    const lines: Line[] = [];
    const all = last === undefined || this.#isSkipping ? undefined : readAll(bytes.subarray(0, last + 1), ends);
    let from = 0;
    for (const [index, end] of ends.entries()) {
      const offset = this.#place.offset + end + 1 - from;
      const record = all?.[index];
      if (record !== undefined) this.#take(record, offset, lines);
      else this.#takeDamaged(bytes.subarray(from, end), offset, lines);
      from = end + 1;
    }
    this.#rest = bytes.subarray(from);
    if (this.#rest.length > logRecordBytes) this.#skip();
    return lines;
  }

  #skip(): void {
    if (!this.#isSkipping) this.#damaged += 1;
    this.#isSkipping = true;
    this.#place = { ...this.#place, offset: this.#place.offset + this.#rest.length };
    this.#rest = Buffer.alloc(0);
  }

  /** Bytes up to a newline, in a chunk in which not all are records. */
  #takeDamaged(bytes: Buffer, offset: number, lines: Line[]): void {
    if (this.#isSkipping) {
      this.#isSkipping = false;
      this.#place = { ...this.#place, offset };
      return;
    }
    const whole = readOne(bytes);
    if (whole === undefined) this.#damaged += 1;
    const record = whole ?? readEnd(bytes);
    if (record === undefined) this.#place = { ...this.#place, offset };
    else this.#take(record, offset, lines);
  }

  #take({ log, stream, time: ts }: Record, offset: number, lines: Line[]): void {
    const before = this.#place;
    const last = before[stream];
    const ends = log.endsWith('\n');
    const text = ends ? log.slice(0, -1) : log;
    const first = ts === last.ts ? last.nth + 1 : 0;
    // A line of exactly 16 KiB ends with a record that holds only the newline: no other line.
    if (ends && text === '' && last.isOpen && ts === last.ts) {
      this.#place = placeAfter(before, stream, { ...last, isOpen: false }, offset);
      return;
    }
    const bytes = Buffer.byteLength(text);
    if (bytes <= limits.logLineBytes) {
      this.#place = placeAfter(before, stream, { ts, nth: first, isOpen: !ends }, offset);
      lines.push({ ts, stream, nth: first, text, bytes, at: this.#place });
      return;
    }
    const pieces = split(text);
    const nth = first + pieces.length - 1;
    this.#place = placeAfter(before, stream, { ts, nth, isOpen: !ends }, offset);
    for (const [index, piece] of pieces.entries()) {
      const at = first + index === nth ? this.#place : before;
      lines.push({ ts, stream, nth: first + index, text: piece, bytes: Buffer.byteLength(piece), at });
    }
  }
}

function newlinesIn(bytes: Buffer): number[] {
  const places: number[] = [];
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) places.push(at);
  return places;
}

/** The records, decoded as one array, which costs a third; `undefined` if one is damaged. */
function readAll(bytes: Buffer, ends: readonly number[]): Record[] | undefined {
  const list = Buffer.allocUnsafe(bytes.length + 1);
  list[0] = 0x5b;
  bytes.copy(list, 1);
  for (const end of ends) list[end + 1] = 0x2c;
  list[bytes.length] = 0x5d;
  const records = tried(() => decodeRecords(list));
  return records?.length === ends.length && records.every(stampFully) ? records : undefined;
}

const readOne = (bytes: Buffer): Record | undefined => {
  const record = tried(() => decodeRecord(bytes));
  return record !== undefined && stampFully(record) ? record : undefined;
};

/**
 * After a crash of the engine or its machine, the beginning of a record or zeros may precede a
 * record. A text never has these bytes: its quotes are escaped.
 */
const recordStart = Buffer.from('{"log":"');
const readEnd = (bytes: Buffer): Record | undefined => {
  const from = bytes.lastIndexOf(recordStart);
  return from > 0 ? readOne(bytes.subarray(from)) : undefined;
};

/** Gives the record's time nine digits. @returns `false` if it has no valid time */
function stampFully(record: Record): boolean {
  const ts = fullStamp(record.time);
  if (ts !== undefined) record.time = ts;
  return ts !== undefined;
}

function tried<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}

const placeAfter = ({ file, stdout, stderr }: FilePlace, stream: StreamName, next: StreamPlace, offset: number) =>
  stream === 'stdout'
    ? { file, offset, ts: next.ts, stdout: next, stderr }
    : { file, offset, ts: next.ts, stdout, stderr: next };

/** A byte that is not UTF-8 takes three in the engine's file, so a record may exceed 16 KiB. */
function split(text: string): string[] {
  const bytes = Buffer.from(text);
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const pieces: string[] = [];
  for (let from = 0; from < bytes.length; from += limits.logLineBytes) {
    const to = from + limits.logLineBytes;
    pieces.push(decoder.decode(bytes.subarray(from, to), { stream: to < bytes.length }));
  }
  return pieces;
}

/** The time of the record that ends with these bytes. */
export function timeAtEnd(bytes: Buffer): string | undefined {
  const [, time] = /"time":"([^"]{1,40})"\}\n$/.exec(bytes.toString('latin1')) ?? [];
  return time === undefined ? undefined : fullStamp(time);
}
