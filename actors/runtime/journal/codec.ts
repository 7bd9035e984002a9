/**
 * The stored form of records and journal entries: `<version> <crc32, 8 hex digits> <JSON>`. We keep
 * a checksum of our own because nats-server was seen to deliver a bit that had flipped on its disk.
 * A record that does not match its checksum is quarantined.
 */
import { crc32 } from 'node:zlib';
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import type { ClockReading } from '../../../lib/time/cautious-clock.ts';
import { OperationRecord } from '../../../schemas/records/operation.ts';
import type { Event } from '../../../schemas/api/event.ts';

const formatVersion = '1';

export type Decoded<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: string };

const seal = (body: string): string => `${formatVersion} ${crc32(body).toString(16).padStart(8, '0')} ${body}`;

function open(text: string): Decoded<string> {
  const version = text.slice(0, text.indexOf(' '));
  if (version !== formatVersion) return { ok: false, fault: `format ${JSON.stringify(version.slice(0, 16))}` };
  const start = version.length + 10;
  const body = text.slice(start);
  if (text[start - 1] !== ' ' || crc32(body) !== Number.parseInt(text.slice(version.length + 1, start - 1), 16)) {
    return { ok: false, fault: 'checksum' };
  }
  return { ok: true, value: body };
}

/**
 * What a value looks like, as a compiled schema. Such schemas are open: a newer release may have
 * written more.
 */
export interface Shape<T> {
  Check(value: unknown): value is T;
}

export const anyShape: Shape<unknown> = Compile(Type.Unknown());

function parse<T>(json: string, shape: Shape<T>): Decoded<T> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return { ok: false, fault: 'JSON' };
  }
  return shape.Check(value) ? { ok: true, value } : { ok: false, fault: 'shape' };
}

/** The checksum in a value's head; computed over the whole value if it has no head. */
export function checksumOf(text: string): number {
  const stated = /^1 ([0-9a-f]{8}) /.exec(text)?.[1];
  return stated === undefined ? crc32(text) : Number.parseInt(stated, 16);
}

/** For values under keys of their own: records, the epoch, the mark, outcomes of operations. */
export const encodeValue = (value: unknown): string => seal(JSON.stringify(value));
export function decodeValue<T>(text: string, shape: Shape<T>): Decoded<T> {
  const opened = open(text);
  return opened.ok ? parse(opened.value, shape) : opened;
}

/** A key's encoded value, or null for its deletion. */
export type Change = readonly [key: string, value: string | null];

/** An event, and the subject on which it is published. */
export const OutgoingEvent = Type.Object({
  subject: Type.String(),
  event: Type.Unsafe<Event>(Type.Object({ id: Type.String() })),
});
export type OutgoingEvent = Readonly<Static<typeof OutgoingEvent>>;

// Upper bounds of the bytes that these take in a message; they bound groups and checkpoints. An
// answer is JSON inside JSON.
export const operationBytes = ({ answer }: OperationRecord): number =>
  300 + (answer.kind === 'body' ? Buffer.byteLength(JSON.stringify(answer.body)) : 0);
export const eventBytes = ({ event }: OutgoingEvent): number =>
  800 + (event.message === null ? 0 : Buffer.byteLength(JSON.stringify(event.message)));

/** What one commit changed. `number` counts commits from 1 without a gap. */
export interface JournalEntry {
  readonly number: number;
  readonly changes: readonly Change[];
  readonly operations: readonly OperationRecord[];
  readonly events: readonly OutgoingEvent[];
  /** The time by which the partition deletes. Absent in entries from before 0.1.0. */
  readonly clock?: ClockReading;
}

/** By which a partition deletes (lib/time/cautious-clock.ts). */
export const clockFields = { atMs: Type.Number(), wallMs: Type.Number(), agreedMs: Type.Number() };

const headShape = Compile(
  Type.Object({
    number: Type.Integer(),
    keys: Type.Array(Type.String()),
    operations: Type.Array(OperationRecord),
    events: Type.Array(OutgoingEvent),
    clock: Type.Optional(Type.Object(clockFields)),
  }),
);

/**
 * The head as JSON, then a line for each change: its value, already encoded, or `-` for a deletion.
 */
export function encodeEntry(entry: JournalEntry): string {
  const head = {
    number: entry.number,
    keys: entry.changes.map(([key]) => key),
    operations: entry.operations,
    events: entry.events,
    ...(entry.clock === undefined ? {} : { clock: entry.clock }),
  };
  const lines = [JSON.stringify(head)];
  for (const [, value] of entry.changes) lines.push(value ?? '-');
  return seal(lines.join('\n'));
}

export function decodeEntry(text: string): Decoded<JournalEntry> {
  const opened = open(text);
  if (!opened.ok) return opened;
  const [first = '', ...values] = opened.value.split('\n');
  const head = parse(first, headShape);
  if (!head.ok) return head;
  const { keys } = head.value;
  if (values.length !== keys.length) return { ok: false, fault: 'length' };
  const changes = keys.map((key, index): Change => [key, values[index] === '-' ? null : (values[index] ?? null)]);
  const { number, operations, events, clock } = head.value;
  return { ok: true, value: { number, changes, operations, events, ...(clock === undefined ? {} : { clock }) } };
}
