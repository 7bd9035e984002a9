/** How records and the journal are written, and what a load makes of a bucket that is whole, damaged or short. */
import t from 'tap';
import { batchWrites } from '../../actors/runtime/checkpoint.ts';
import { decodeEntry, decodeValue, encodeEntry, encodeValue, type JournalEntry } from '../../actors/runtime/codec.ts';
import { LoadError, readPartition } from '../../actors/runtime/load.ts';
import { recordKey } from '../../actors/state.ts';
import { keys } from '../../schemas/buckets.ts';
import type { ContainerRecord } from '../../schemas/container.ts';
import { limits } from '../../schemas/limits.ts';
import { containerId, operation, specOf } from './support.ts';
import { MemoryBucket } from './support/memory-store.ts';
import { acme, container, h1, hostRecord } from './support/records.ts';

const outcome = () => ({
  op: operation(),
  atMs: 1,
  code: 'ok' as const,
  answer: { kind: 'body' as const, body: '{"data":"a\\nb"}' },
});

const entryOf = (number: number, more: Partial<JournalEntry> = {}): JournalEntry => ({
  number,
  changes: [[keys.tenant(acme), encodeValue({ kind: 'tenant', tenant: acme, number })]],
  operations: [],
  events: [],
  ...more,
});

t.test('codec', (t) => {
  const odd = { text: 'é \u2028 \ud800 \n \t "', deep: [{ a: null }] };
  t.same(decodeValue(encodeValue(odd)), { ok: true, value: odd });
  const entry = entryOf(7, { operations: [outcome()], changes: [...entryOf(7).changes, ['container.acme.x', null]] });
  t.same(decodeEntry(encodeEntry(entry)), { ok: true, value: entry });
  t.same(decodeEntry(encodeEntry(entryOf(1, { changes: [] }))), { ok: true, value: entryOf(1, { changes: [] }) });

  const whole = encodeValue({ a: 1 });
  const damaged: [string, string, string][] = [
    ['empty', '', 'format'],
    ['another format', `2${whole.slice(1)}`, 'format'],
    ['no checksum', '1', 'format'],
    ['a flipped bit', whole.replace('"a"', '"c"'), 'checksum'],
    ['a wrong checksum', whole.replace(/^1 ./, '1 g'), 'checksum'],
    ['cut short', whole.slice(0, -1), 'checksum'],
    ['bit rot', 'bit rot', 'format'],
  ];
  for (const [name, text, fault] of damaged) {
    for (const decode of [decodeValue, decodeEntry]) {
      const decoded = decode(text);
      t.match(decoded, { ok: false, fault: new RegExp(fault) }, name);
    }
  }
  for (let cut = 0; cut < whole.length; cut++) t.notOk(decodeValue(whole.slice(0, cut)).ok, `cut at ${cut}`);
  t.end();
});

/** A bucket after so many commits, of which those up to the mark are checkpointed. */
function bucketOf(last: number, mark: number, entry: (number: number) => JournalEntry = entryOf): MemoryBucket {
  const bucket = new MemoryBucket();
  for (let number = 1; number <= last; number++) {
    const journalled = entry(number);
    bucket.set(keys.journal(number % limits.journalSlots), encodeEntry(journalled));
    if (number <= mark) for (const { key, value } of batchWrites([journalled])) bucket.set(key, value);
  }
  return bucket;
}

t.test('an empty bucket, and ones that are whole', (t) => {
  t.match(readPartition([]), { records: [], pending: [], mark: 0, last: 0 });
  const R = limits.journalSlots;
  for (const [last, mark] of [
    [1, 0],
    [5, 5],
    [5, 2],
    [R - 1, 3],
    [R, 3],
    [R + 1, 4],
    [R + 500, 600],
    [3 * R + 7, 2 * R + 9],
  ] as const) {
    const loaded = readPartition(bucketOf(last, mark).values());
    t.match(loaded, { mark, last }, `${last} entries, ${mark} checkpointed`);
    t.same(
      loaded.pending.map(({ number }) => number),
      Array.from({ length: last - mark }, (_, index) => mark + 1 + index),
    );
    t.match(loaded.records, [{ number: last }], 'the newest value');
  }
  t.end();
});

t.test('what may have lost an acknowledged entry is not served', (t) => {
  const R = limits.journalSlots;
  const rows: [string, MemoryBucket, (bucket: MemoryBucket) => void, RegExp][] = [
    ['a damaged mark', bucketOf(5, 2), (b) => b.set(keys.checkpoint, 'rot'), /mark is damaged/],
    ['a lost mark', bucketOf(R + 5, R), (b) => b.lose(keys.checkpoint), /entry 1 is missing/],
    ['the first above the mark is lost', bucketOf(5, 2), (b) => b.lose(keys.journal(3)), /entry 3 is missing/],
    ['one between is lost', bucketOf(5, 2), (b) => b.lose(keys.journal(4)), /entry 4 is missing/],
    ['one between is damaged', bucketOf(5, 2), (b) => b.set(keys.journal(4), 'rot'), /entry 4 is missing/],
    ['the last is damaged', bucketOf(5, 2), (b) => b.set(keys.journal(5), 'rot'), /entry 5 may be damaged/],
    ['the only one is damaged', bucketOf(1, 0), (b) => b.set(keys.journal(1), 'rot'), /entry 1 may be damaged/],
    [
      'the last is lost, in the second round',
      bucketOf(R + 9, R),
      (b) => b.lose(keys.journal(9)),
      /entry 1033 may be lost/,
    ],
    [
      'the last is damaged, in the second round',
      bucketOf(R + 9, R),
      (b) => b.set(keys.journal(9), 'rot'),
      /entry 1033 may be damaged/,
    ],
    [
      'the last two are lost, in the second round',
      bucketOf(R + 9, R),
      (b) => {
        b.lose(keys.journal(8));
        b.lose(keys.journal(9));
      },
      /entry 1032 may be lost/,
    ],
  ];
  for (const [name, bucket, harm, message] of rows) {
    readPartition(bucket.values());
    harm(bucket);
    try {
      readPartition(bucket.values());
      t.fail(`${name}: served`);
    } catch (error) {
      t.ok(error instanceof LoadError, name);
      t.match((error as Error).message, message, name);
    }
  }
  const below = bucketOf(9, 8);
  below.set(keys.journal(3), 'rot');
  t.match(readPartition(below.values()), { last: 9 }, 'a damaged entry below the mark is not needed');
  t.end();
});

t.test('values: damaged ones are quarantined by key, deleted ones are gone, the journal is the newer', (t) => {
  const bucket = new MemoryBucket();
  const [stays, goes, comes, rots] = ['stays', 'goes', 'comes', 'rots'].map((name) => container({}, name)) as [
    ContainerRecord,
    ContainerRecord,
    ContainerRecord,
    ContainerRecord,
  ];
  for (const record of [stays, goes, rots]) bucket.set(recordKey(record), encodeValue(record));
  bucket.set(keys.host(h1), encodeValue(hostRecord(h1)));
  bucket.set(recordKey(rots), encodeValue(rots).replace('rots', 'rats'));
  const swapped = containerId();
  bucket.set(keys.container(acme, swapped), encodeValue(stays));
  bucket.set(keys.container(acme, containerId()), null);
  const renamed = { ...stays, spec: specOf('renamed') };
  const entries: JournalEntry[] = [
    entryOf(1, {
      changes: [
        [recordKey(goes), null],
        [recordKey(comes), encodeValue(comes)],
        [recordKey(stays), encodeValue(renamed)],
      ],
      operations: [outcome()],
    }),
  ];
  for (const entry of entries) bucket.set(keys.journal(entry.number), encodeEntry(entry));
  bucket.set(keys.operations(0), encodeValue([outcome(), outcome()]));
  bucket.set('ops.9', 'rot');
  const loaded = readPartition(bucket.values());
  t.same(loaded.records.map((record) => (record.kind === 'container' ? record.spec.name : record.kind)).sort(), [
    'comes',
    'host',
    'renamed',
  ]);
  t.same([...loaded.quarantined].sort(), [recordKey(rots), keys.container(acme, swapped)].sort());
  t.same(
    loaded.operations.map(({ commit }) => commit),
    [0, 0, 1],
    'outcomes of both, with the commit that they wait for',
  );
  t.end();
});

t.test('a checkpoint writes the newest value of each key, the outcomes, and the mark last', (t) => {
  const writes = batchWrites([
    entryOf(1, { operations: [outcome()] }),
    entryOf(2, { changes: [['container.acme.x', 'x']] }),
    entryOf(3, { changes: [['container.acme.x', null]], operations: [outcome()] }),
  ]);
  t.same(
    writes.map(({ key }) => key),
    [keys.tenant(acme), 'container.acme.x', keys.operations(3), keys.checkpoint],
  );
  t.equal(writes[1]?.value, null);
  t.equal(writes[2]?.ttlMs, limits.operationTtlMs);
  t.same(decodeValue(writes[3]?.value ?? ''), { ok: true, value: 3 });
  t.end();
});
