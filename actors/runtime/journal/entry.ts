/**
 * The stored form of journal entries. An entry has one section for each commit that it holds, of
 * any partition of its member:
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
import { OperationRecord } from '../../../schemas/records/operation.ts';
import {
  bufferOf,
  bytesOf,
  clockFields,
  hexOf,
  OutgoingEvent,
  OutgoingLine,
  parseAs,
  type Change,
  type Commit,
  type Decoded,
} from './codec.ts';

const formatVersion = '3';
const lineBreak = 10;

const Section = Type.Object({
  partition: Type.Integer(),
  bytes: Type.Integer({ minimum: 0 }),
  crc: Type.Integer(),
  /** Put again: later commits of the partition may be in earlier entries. */
  carried: Type.Optional(Type.Literal(true)),
});

/** Where the oldest entry is that holds a commit which is in no checkpoint yet. */
const Low = Type.Object({
  number: Type.Integer(),
  /** Of the stream; every entry that is still needed is there or after it. */
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
  const line = Buffer.from(`${formatVersion} ${hexOf(crc32(head))} ${head}\n`);
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
    /** Bytes of the values; -1: the key is deleted. */
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
