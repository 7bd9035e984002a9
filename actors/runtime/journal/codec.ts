/**
 * The stored forms.
 *
 * Records and other values under keys of their own: `<version> <crc32, 8 hex digits> <JSON>`. We
 * keep a checksum of our own because nats-server was seen to deliver a bit that had flipped on its
 * disk. A record that does not match its checksum is quarantined.
 *
 * A value is encoded once: journal and checkpoint share it. It stays a string until it is written:
 * a commit waits seconds for its checkpoint, and V8 would stop the process for its many small
 * buffers (ADR 10).
 *
 * An entry of a journal has one section for each commit that it holds, of any partition of its
 * member:
 *
 *     3 <crc32 of the head> <head: JSON>\n<section>…<section>
 *
 * The head lists the sections with their partitions, lengths and checksums, so a reader takes the
 * sections that it needs, and damage in one harms no other. A section is the commit's own head as
 * JSON and a line break, then the values, already encoded, end to end.
 */
import { crc32 } from 'node:zlib';
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import type { ClockReading } from '../../../lib/time/cautious-clock.ts';
import { OperationRecord } from '../../../schemas/records/operation.ts';
import type { AuditLine, Author } from '../../../schemas/api/audit/line.ts';
import type { EventBody } from '../../../schemas/api/event.ts';
import { authorText } from '../../../schemas/records/event-authors.ts';

/** The format of nearly all values. */
const commonFormat = '1';

/** The stored form of a value: bytes where it was read, a string where it was made. */
export type Encoded = Uint8Array | string;

export const bytesOf = (value: Encoded): number =>
  typeof value === 'string' ? Buffer.byteLength(value) : value.length;

export type Decoded<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: string };

const headLength = '1 01234567 '.length;
const hexLength = 8;

export const hexOf = (checksum: number): string => checksum.toString(16).padStart(hexLength, '0');

/** The same bytes, with the methods of a Buffer. */
export const bufferOf = (value: Encoded): Buffer =>
  typeof value === 'string' ? Buffer.from(value) : Buffer.from(value.buffer, value.byteOffset, value.byteLength);

const seal = (body: string, format: string): string => `${format} ${hexOf(crc32(body))} ${body}`;

/** The bytes under the checksum. `format`: one character. */
export function openSealed(value: Encoded, format = commonFormat): Decoded<Buffer> {
  const bytes = bufferOf(value);
  const version = bytes.toString('latin1', 0, Math.max(0, bytes.indexOf(' ')));
  if (version !== format) return { ok: false, fault: `format ${JSON.stringify(version.slice(0, 16))}` };
  const body = bytes.subarray(headLength);
  const stated = Number.parseInt(bytes.toString('latin1', format.length + 1, headLength - 1), 16);
  if (bytes.toString('latin1', headLength - 1, headLength) !== ' ' || crc32(body) !== stated) {
    return { ok: false, fault: 'checksum' };
  }
  return { ok: true, value: body };
}

/**
 * The shape of a value, as a compiled schema. Such schemas are open: a newer release may have
 * written more fields.
 */
export interface Shape<T> {
  Check(value: unknown): value is T;
}

export const anyShape: Shape<unknown> = Compile(Type.Unknown());

export function parseAs<T>(json: string, shape: Shape<T>): Decoded<T> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return { ok: false, fault: 'JSON' };
  }
  return shape.Check(value) ? { ok: true, value } : { ok: false, fault: 'shape' };
}

/** The checksum in a value's head; computed over the whole value if it has no head. */
export function checksumOf(value: Encoded): number {
  const head =
    typeof value === 'string' ? value.slice(0, headLength) : bufferOf(value).toString('latin1', 0, headLength);
  const stated = /^1 ([0-9a-f]{8}) /.exec(head)?.[1];
  return stated === undefined ? crc32(value) : Number.parseInt(stated, 16);
}

/**
 * Encodes a value under a key of its own: a record, the digest, an outcome of an operation, a
 * lease.
 */
export const encodeValue = (value: unknown, format = commonFormat): string => seal(JSON.stringify(value), format);

export function decodeValue<T>(value: Encoded, shape: Shape<T>, format?: string): Decoded<T> {
  const opened = openSealed(value, format);
  return opened.ok ? parseAs(opened.value.toString(), shape) : opened;
}

/** A key's encoded value, or null for its deletion. */
export type Change = readonly [key: string, value: Encoded | null];

const outgoing = <Item extends Identified>() => ({
  subject: Type.String(),
  event: Type.Unsafe<Item>(Type.Object({ id: Type.String() })),
});

/** `<partition>-<commit>-<index>` */
export interface Identified {
  readonly id: string;
}

/** An item of a commit for a stream, and the subject on which it is published. */
export interface Outgoing<Item extends Identified> {
  readonly subject: string;
  readonly event: Item;
  /** The author of an event; absent if it has none. */
  readonly by?: Author;
}

export const OutgoingEvent = Type.Object({
  ...outgoing<EventBody>(),
  by: Type.Optional(Type.Unsafe<Author>(Type.Object({}))),
});
export type OutgoingEvent = Readonly<Static<typeof OutgoingEvent>>;

/** A line of the audit. */
export const OutgoingLine = Type.Object(outgoing<AuditLine>());
export type OutgoingLine = Readonly<Static<typeof OutgoingLine>>;

/**
 * Remembers each size, because groups, checkpoints and outboxes ask for the same objects, which
 * never change.
 */
function measuredOnce<T extends object>(bytesOf: (one: T) => number): (one: T) => number {
  const known = new WeakMap<T, number>();
  return (one) => {
    let bytes = known.get(one);
    if (bytes === undefined) known.set(one, (bytes = bytesOf(one)));
    return bytes;
  };
}

// Upper bounds of the bytes that these take in a message; they bound groups and checkpoints. An
// answer is JSON inside JSON.
export const operationBytes = ({ answer }: OperationRecord): number =>
  300 + (answer.kind === 'body' ? Buffer.byteLength(JSON.stringify(answer.body)) : 0);
export const eventBytes = measuredOnce(
  ({ event, by }: OutgoingEvent): number =>
    800 +
    (event.message === null ? 0 : Buffer.byteLength(JSON.stringify(event.message))) +
    (by === undefined ? 0 : authorText(by).length),
);

/** Bytes of a line with the comma behind it. */
export const lineBytes = measuredOnce(
  ({ subject, event }: OutgoingLine): number => Buffer.byteLength(JSON.stringify(event)) + subject.length + 32,
);

/**
 * The changes of one group of turns. `number` counts a partition's commits from 1 without a gap.
 */
export interface Commit {
  readonly number: number;
  readonly changes: readonly Change[];
  readonly operations: readonly OperationRecord[];
  readonly events: readonly OutgoingEvent[];
  /** Absent if there are none. */
  readonly lines?: readonly OutgoingLine[];
  /** The time by which the partition deletes. */
  readonly clock: ClockReading;
}

/** The fields of the time by which a partition deletes (lib/time/cautious-clock.ts). */
export const clockFields = { atMs: Type.Number(), wallMs: Type.Number(), agreedMs: Type.Number() };

const entryFormat = '3';
const lineBreak = 10;

const Section = Type.Object({
  partition: Type.Integer(),
  bytes: Type.Integer({ minimum: 0 }),
  crc: Type.Integer(),
  /** The section was put again: later commits of the partition may be in earlier entries. */
  carried: Type.Optional(Type.Literal(true)),
});

/** The position of the oldest entry that holds a commit which is in no checkpoint yet. */
const Low = Type.Object({
  number: Type.Integer(),
  /** The sequence in the stream; every entry that is still needed is there or after it. */
  sequence: Type.Integer(),
});
export type Low = Readonly<Static<typeof Low>>;

const EntryHead = Type.Object({
  /** Counts the entries of a journal from 1 without a gap. */
  number: Type.Integer(),
  low: Low,
  sections: Type.Array(Section),
});
const entryShape = Compile(EntryHead);

export interface EncodedSection {
  readonly partition: number;
  readonly bytes: Uint8Array;
  readonly carried?: true;
}

export interface StoredEntry {
  readonly number: number;
  readonly low: Low;
  readonly sections: readonly StoredSection[];
}

export interface StoredSection extends EncodedSection {
  readonly crc: number;
}

export function encodeEntry(number: number, low: Low, sections: readonly EncodedSection[]): Uint8Array {
  const index = sections.map(({ partition, bytes, carried }) => ({
    partition,
    bytes: bytes.length,
    crc: crc32(bytes),
    carried,
  }));
  const head = JSON.stringify({ number, low, sections: index });
  const line = Buffer.from(`${entryFormat} ${hexOf(crc32(head))} ${head}\n`);
  return Buffer.concat([line, ...sections.map(({ bytes }) => bytes)]);
}

/** The head alone is checked; `decodeSection` checks a section. */
export function decodeEntry(stored: Uint8Array): Decoded<StoredEntry> {
  const bytes = bufferOf(stored);
  const end = bytes.indexOf(lineBreak);
  const [, crc, head] = /^3 ([0-9a-f]{8}) (.*)$/.exec(bytes.toString('utf8', 0, Math.max(0, end))) ?? [];
  if (crc === undefined || head === undefined) return { ok: false, fault: 'format' };
  if (crc32(head) !== Number.parseInt(crc, 16)) return { ok: false, fault: 'checksum' };
  const decoded = parseAs(head, entryShape);
  if (!decoded.ok) return decoded;
  const { number, low, sections } = decoded.value;
  let at = end + 1;
  const found = sections.map(({ bytes: length, ...section }): StoredSection => {
    const from = at;
    at += length;
    return { ...section, bytes: bytes.subarray(from, at) };
  });
  return { ok: true, value: { number, low, sections: found } };
}

const commitShape = Compile(
  Type.Object({
    number: Type.Integer(),
    /** Bytes of the values; -1 if the key is deleted. */
    keys: Type.Array(Type.Tuple([Type.String(), Type.Integer({ minimum: -1 })])),
    operations: Type.Array(OperationRecord),
    events: Type.Array(OutgoingEvent),
    lines: Type.Optional(Type.Array(OutgoingLine)),
    clock: Type.Object(clockFields),
  }),
);

export function encodeSection({ number, changes, operations, events, lines, clock }: Commit): Uint8Array {
  const keys = changes.map(([key, value]) => [key, value === null ? -1 : bytesOf(value)] as const);
  const head = `${JSON.stringify({ number, keys, operations, events, lines, clock })}\n`;
  const bytes = keys.reduce((sum, [, length]) => sum + Math.max(0, length), Buffer.byteLength(head));
  const section = Buffer.allocUnsafe(bytes);
  let at = section.write(head);
  for (const [, value] of changes) {
    if (typeof value === 'string') at += section.write(value, at);
    else if (value !== null) {
      section.set(value, at);
      at += value.length;
    }
  }
  return section;
}

export function decodeSection({ bytes, crc }: StoredSection): Decoded<Commit> {
  if (crc32(bytes) !== crc) return { ok: false, fault: 'checksum' };
  const all = bufferOf(bytes);
  const end = all.indexOf(lineBreak);
  const head = parseAs(all.toString('utf8', 0, Math.max(0, end)), commitShape);
  if (!head.ok) return head;
  const { keys, ...rest } = head.value;
  let at = end + 1;
  const changes = keys.map(([key, length]): Change => {
    if (length < 0) return [key, null];
    const from = at;
    at += length;
    return [key, all.subarray(from, at)];
  });
  if (at !== all.length) return { ok: false, fault: 'length' };
  return { ok: true, value: { ...rest, changes } };
}
