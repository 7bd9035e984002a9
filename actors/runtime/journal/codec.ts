/**
 * The stored form of records and journal entries: `<version> <crc32, 8 hex digits> <JSON>`. We keep
 * a checksum of our own because nats-server was seen to deliver a bit that had flipped on its disk.
 * A record that does not match its checksum is quarantined.
 */
import { crc32 } from 'node:zlib';
import type { ClockReading } from '../../../lib/time/cautious-clock.ts';
import type { OperationRecord } from '../../../schemas/api/container.ts';
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

function parse<T>(text: string): Decoded<T> {
  const opened = open(text);
  if (!opened.ok) return opened;
  try {
    return { ok: true, value: JSON.parse(opened.value) as T };
  } catch {
    return { ok: false, fault: 'JSON' };
  }
}

/** The checksum in a value's head; computed over the whole value if it has no head. */
export function checksumOf(text: string): number {
  const stated = /^1 ([0-9a-f]{8}) /.exec(text)?.[1];
  return stated === undefined ? crc32(text) : Number.parseInt(stated, 16);
}

/** For values under keys of their own: records, the epoch, the mark, outcomes of operations. */
export const encodeValue = (value: unknown): string => seal(JSON.stringify(value));
export const decodeValue = <T>(text: string): Decoded<T> => parse<T>(text);

/** A key's encoded value, or null for its deletion. */
export type Change = readonly [key: string, value: string | null];

/** An event, and the subject on which it is published. */
export interface OutgoingEvent {
  readonly subject: string;
  readonly event: Event;
}

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

interface EntryHead {
  readonly number: number;
  readonly keys: readonly string[];
  readonly operations: readonly OperationRecord[];
  readonly events: readonly OutgoingEvent[];
  readonly clock?: ClockReading;
}

/**
 * The head as JSON, then a line for each change: its value, already encoded, or `-` for a deletion.
 */
export function encodeEntry(entry: JournalEntry): string {
  const head: EntryHead = {
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
  const head = JSON.parse(first) as EntryHead;
  if (values.length !== head.keys.length) return { ok: false, fault: 'length' };
  const changes = head.keys.map((key, index): Change => [key, values[index] === '-' ? null : (values[index] ?? null)]);
  const { number, operations, events, clock } = head;
  return { ok: true, value: { number, changes, operations, events, ...(clock === undefined ? {} : { clock }) } };
}
