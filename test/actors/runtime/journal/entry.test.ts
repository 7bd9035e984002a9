/** The stored form of an entry and its sections, and what is left of a damaged one. */
import { crc32 } from 'node:zlib';
import t from 'tap';
import {
  type Commit,
  decodeEntry,
  decodeSection,
  encodeEntry,
  encodeSection,
  encodeValue,
  type StoredEntry,
} from '../../../../actors/runtime/journal/codec.ts';
import type { EventBody } from '../../../../schemas/api/event.ts';
import type { TenantId } from '../../../../schemas/ids.ts';
import type { SuccessCode } from '../../../../schemas/errors.ts';
import { asRead, outcome } from '../../support/commits.ts';
import { noReading } from '../../../../lib/time/cautious-clock.ts';

const by = { tenant: 'acme' as TenantId, subject: 'Zoë 日本', token: 'k', address: null };
const low = { number: 3, sequence: 40 };
const commitOf = (number: number, more: Partial<Commit> = {}): Commit => ({
  number,
  changes: [[`tenant.${number}`, encodeValue({ text: 'é \u2028 \n "', number })]],
  operations: [],
  events: [],
  clock: noReading,
  ...more,
});

function entryWith(...commits: readonly (readonly [partition: number, commit: Commit])[]): Buffer {
  const sections = commits.map(([partition, commit]) => ({ partition, bytes: encodeSection(commit) }));
  return Buffer.from(encodeEntry(9, low, sections));
}

function decoded(value: Uint8Array): StoredEntry {
  const entry = decodeEntry(value);
  if (!entry.ok) throw new Error(entry.fault);
  return entry.value;
}

t.test('an entry is read as it was written', (t) => {
  const commits: [number, Commit][] = [
    [4, commitOf(11)],
    [0, commitOf(7, { changes: [], operations: [outcome()] })],
    [4, commitOf(12, { changes: [...commitOf(12).changes, ['container.acme.x', null], ['host.h', Buffer.from('')]] })],
    [
      3,
      commitOf(4, {
        events: [
          { subject: 'event.acme.a', event: { id: '3-4-0' } as EventBody, by },
          { subject: 'event.acme.a', event: { id: '3-4-1' } as EventBody },
        ],
      }),
    ],
    [15, commitOf(1, { clock: { atMs: 1, wallMs: 2, agreedMs: 3 } })],
    [2, commitOf(5, { changes: [['any', Buffer.from([0, 10, 255, 10])]] })],
    [2, commitOf(6, { operations: [{ ...outcome(), code: 'deferred' as SuccessCode }] })],
  ];
  const entry = decoded(entryWith(...commits));
  t.match(entry, { number: 9, low });
  t.same(
    entry.sections.map(({ partition }) => partition),
    commits.map(([partition]) => partition),
    'its sections in their order',
  );
  for (const [index, [, commit]] of commits.entries()) {
    const section = entry.sections[index];
    t.same(section && decodeSection(section), { ok: true, value: asRead(commit) }, `commit ${commit.number}`);
  }
  t.same(decoded(Buffer.from(encodeEntry(1, { number: 1, sequence: 0 }, []))).sections, []);
  t.end();
});

t.test('an entry that lies within a larger message is read too', (t) => {
  const entry = entryWith([1, commitOf(2)]);
  const message = Buffer.concat([Buffer.from('head'), entry]);
  const { sections } = decoded(message.subarray('head'.length));
  t.same(sections[0] && decodeSection(sections[0]), { ok: true, value: asRead(commitOf(2)) });
  t.end();
});

t.test('damage in the head is damage of the entry', (t) => {
  const whole = entryWith([1, commitOf(2)], [3, commitOf(4)]);
  const end = whole.indexOf('\n');
  for (let at = 0; at <= end; at++) {
    const flipped = Buffer.from(whole);
    flipped[at] = (flipped[at] ?? 0) ^ 1;
    t.notOk(decodeEntry(flipped).ok, `bit at ${at}`);
    t.notOk(decodeEntry(whole.subarray(0, at)).ok, `cut at ${at}`);
  }
  const headOf = (head: string): Buffer => Buffer.from(`3 ${crc32(head).toString(16).padStart(8, '0')} ${head}\n`);
  const rows: [string, Buffer, string][] = [
    ['nothing', Buffer.from(''), 'format'],
    ['rot', Buffer.from('bit rot\n'), 'format'],
    ['another format', Buffer.from(`4${whole.toString('latin1').slice(1)}`, 'latin1'), 'format'],
    ['no JSON', headOf('{'), 'JSON'],
    ['no head', headOf('[]'), 'shape'],
    [
      'a length below zero',
      headOf('{"number":1,"low":{"number":1,"sequence":1},"sections":[{"partition":1,"bytes":-1,"crc":1}]}'),
      'shape',
    ],
  ];
  for (const [name, value, fault] of rows) t.same(decodeEntry(value), { ok: false, fault }, name);
  t.end();
});

t.test('damage in a section is damage of its partition alone', (t) => {
  const whole = entryWith([1, commitOf(2)], [3, commitOf(4)]);
  const from = whole.indexOf('\n') + 1;
  const firstBytes = encodeSection(commitOf(2)).length;
  const states = (value: Uint8Array): boolean[] => decoded(value).sections.map((section) => decodeSection(section).ok);
  for (let at = from; at < whole.length; at++) {
    const flipped = Buffer.from(whole);
    flipped[at] = (flipped[at] ?? 0) ^ 1;
    const isFirst = at < from + firstBytes;
    t.same(states(flipped), [!isFirst, isFirst], `bit at ${at}`);
  }
  t.same(states(whole.subarray(0, -1)), [true, false], 'cut short');
  t.same(states(whole.subarray(0, from)), [false, false], 'without sections');
  t.end();
});

t.test('a section that was written whole by a program with a fault is no commit', (t) => {
  const sectionOf = (text: string) => {
    const bytes = Buffer.from(text);
    return decodeSection({ partition: 1, bytes, crc: crc32(bytes) });
  };
  const head = (keys: unknown): string =>
    JSON.stringify({ number: 1, keys, operations: [], events: [], clock: noReading });
  t.same(sectionOf(`${head([['a', 2]])}\nab`), {
    ok: true,
    value: { ...commitOf(1), changes: [['a', Buffer.from('ab')]] },
  });
  const rows: [string, string, string][] = [
    ['nothing', '', 'JSON'],
    ['no line break', head([]), 'JSON'],
    ['no commit', '{}\n', 'shape'],
    ['a length that is none', `${head([['a', -2]])}\n`, 'shape'],
    ['values too short', `${head([['a', 2]])}\na`, 'length'],
    ['values too long', `${head([['a', 2]])}\nabc`, 'length'],
  ];
  for (const [name, text, fault] of rows) t.same(sectionOf(text), { ok: false, fault }, name);
  t.end();
});
