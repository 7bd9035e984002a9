/**
 * How records and the journal are written, and what a load makes of a bucket that is whole, damaged
 * or short.
 */
import t from 'tap';
import { batchWrites, clockShape } from '../../../../actors/runtime/journal/checkpoint.ts';
import {
  decodeEntry,
  anyShape,
  decodeValue,
  encodeEntry,
  encodeValue,
  type JournalEntry,
} from '../../../../actors/runtime/journal/codec.ts';
import { records } from '../../../../actors/domain/domain.ts';
import { RecordsDigest } from '../../../../actors/runtime/journal/digest.ts';
import { LoadError, readPartition } from '../../../../actors/runtime/journal/load.ts';
import type { EntryEvents } from '../../../../actors/runtime/events/event-outbox.ts';
import { recordKey } from '../../../../actors/domain/records.ts';
import { keys } from '../../../../schemas/records/buckets.ts';
import type { ContainerRecord } from '../../../../schemas/api/container.ts';
import type { Event } from '../../../../schemas/api/event.ts';
import type { SuccessCode } from '../../../../schemas/errors.ts';
import { limits } from '../../../../schemas/limits.ts';
import { defaultTenant } from '../../../../schemas/api/tenant.ts';
import { containerId, operation, specOf } from '../../support.ts';
import { createRandom } from '../../support/random.ts';
import { MemoryBucket } from '../../support/memory-store.ts';
import { acme, container, h1, hostRecord } from '../../support/records.ts';

const outcome = () => ({
  op: operation(),
  atMs: 1,
  code: 'ok' as const,
  answer: { kind: 'body' as const, body: '{"data":"a\\nb"}' },
});

const entryOf = (number: number, more: Partial<JournalEntry> = {}): JournalEntry => ({
  number,
  changes: [[keys.tenant(acme), encodeValue({ ...defaultTenant(acme), number })]],
  operations: [],
  events: [],
  ...more,
});

t.test('codec', (t) => {
  const odd = { text: 'é \u2028 \ud800 \n \t "', deep: [{ a: null }] };
  t.same(decodeValue(encodeValue(odd), anyShape), { ok: true, value: odd });
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
    for (const decoded of [decodeValue(text, anyShape), decodeEntry(text)]) {
      t.match(decoded, { ok: false, fault: new RegExp(fault) }, name);
    }
  }
  for (let cut = 0; cut < whole.length; cut++) t.notOk(decodeValue(whole.slice(0, cut), anyShape).ok, `cut at ${cut}`);

  // Written whole, but by a program with a fault, or not by this one.
  t.same(decodeValue(whole, clockShape), { ok: false, fault: 'shape' });
  t.same(decodeEntry(whole), { ok: false, fault: 'shape' });
  t.same(decodeEntry(encodeValue([])), { ok: false, fault: 'shape' });
  const newer = { atMs: 1, wallMs: 1, agreedMs: 1, mark: 1, added: true };
  t.same(decodeValue(encodeValue(newer), clockShape), { ok: true, value: newer }, 'of a newer release');
  const ofNewer = entryOf(7, { operations: [{ ...outcome(), code: 'deferred' as SuccessCode }] });
  t.same(decodeEntry(encodeEntry(ofNewer)), { ok: true, value: ofNewer }, 'with an outcome of a newer release');
  t.end();
});

/** A bucket after so many commits, of which those up to the mark are checkpointed. */
function bucketOf(last: number, mark: number, entry: (number: number) => JournalEntry = entryOf): MemoryBucket {
  const bucket = new MemoryBucket();
  const digest = new RecordsDigest(records.isKey);
  for (let number = 1; number <= last; number++) {
    const journalled = entry(number);
    bucket.set(keys.journal(number % limits.journalSlots), encodeEntry(journalled));
    if (number <= mark) for (const { key, value } of batchWrites([journalled], digest)) bucket.set(key, value);
  }
  return bucket;
}

t.test('an empty bucket, and ones that are whole', (t) => {
  t.match(readPartition([], records), { records: [], pending: [], mark: 0, last: 0 });
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
    const loaded = readPartition(bucketOf(last, mark).values(), records);
    t.match(loaded, { mark, last }, `${last} entries, ${mark} checkpointed`);
    t.same(
      loaded.pending.map(({ number }) => number),
      Array.from({ length: last - mark }, (_, index) => mark + 1 + index),
    );
    t.match(loaded.records, [{ number: last }], 'the newest value');
  }
  t.end();
});

t.test('events that were parked are there for the next owner, and a key of them that is damaged is named', (t) => {
  const bucket = bucketOf(5, 5);
  const event = { id: '0-3-0', container_id: 'c', message: null } as Event;
  const entries: EntryEvents[] = [{ number: 3, events: [{ subject: 'event.acme.c', event }] }];
  bucket.set(keys.events(3), encodeValue(entries));
  bucket.set(keys.events(4), 'rot');
  bucket.set(keys.events(5), null);
  t.match(readPartition(bucket.values(), records), {
    parked: [{ key: keys.events(3), entries }],
    damagedEvents: [keys.events(4)],
    records: [{ number: 5 }],
  });
  t.end();
});

t.test('what may have lost an acknowledged entry is not served', (t) => {
  const R = limits.journalSlots;
  const rows: [string, MemoryBucket, (bucket: MemoryBucket) => void, RegExp][] = [
    ['a damaged mark', bucketOf(5, 2), (b) => b.set(keys.checkpoint, 'rot'), /mark is damaged/],
    ['a lost mark', bucketOf(R + 5, R), (b) => b.lose(keys.checkpoint), /mark 0 is older than the digest/],
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
    readPartition(bucket.values(), records);
    harm(bucket);
    try {
      readPartition(bucket.values(), records);
      t.fail(`${name}: served`);
    } catch (error) {
      t.ok(error instanceof LoadError, name);
      t.match((error as Error).message, message, name);
    }
  }
  const below = bucketOf(9, 8);
  below.set(keys.journal(3), 'rot');
  t.match(readPartition(below.values(), records), { last: 9 }, 'a damaged entry below the mark is not needed');
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
  const loaded = readPartition(bucket.values(), records);
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
  const digest = new RecordsDigest(records.isKey);
  const writes = batchWrites(
    [
      entryOf(1, { operations: [outcome()] }),
      entryOf(2, { changes: [['container.acme.x', 'x']] }),
      entryOf(3, { changes: [['container.acme.x', null]], operations: [outcome()] }),
    ],
    digest,
  );
  t.same(
    writes.map(({ key }) => key),
    [keys.tenant(acme), 'container.acme.x', keys.operations(3), keys.digest, keys.clock, keys.checkpoint],
  );
  t.equal(writes[1]?.value, null);
  t.equal(writes[2]?.ttlMs, limits.operationTtlMs);
  t.same(decodeValue(writes[3]?.value ?? '', anyShape), { ok: true, value: digest.at(3) });
  t.equal(digest.at(3).count, 1, 'the tenant; the container is gone');
  t.same(decodeValue(writes[5]?.value ?? '', anyShape), { ok: true, value: 3 });
  t.end();
});

t.test('records are those of the checkpoint, or the load is refused', (t) => {
  const [kept, lost, swapped] = ['kept', 'lost', 'swapped'].map((name) => container({}, name)) as [
    ContainerRecord,
    ContainerRecord,
    ContainerRecord,
  ];
  const change = (record: ContainerRecord): JournalEntry['changes'][number] => [recordKey(record), encodeValue(record)];
  const bucketWith = (): MemoryBucket =>
    bucketOf(3, 2, (number) => entryOf(number, { changes: number === 1 ? [kept, lost, swapped].map(change) : [] }));
  const key = recordKey(lost);
  t.equal(readPartition(bucketWith().values(), records).verified, 'verified');
  const refused: [string, (bucket: MemoryBucket) => void, RegExp][] = [
    ['a record is missing', (b) => b.lose(key), /entry 2 has 3 records .* and 2 records .* were read/],
    ['a record is deleted', (b) => b.set(key, null), /2 records/],
    ['a record too many', (b) => b.set(keys.container(acme, containerId()), 'x'), /4 records/],
    ['a record of the past', (b) => b.set(key, encodeValue({ ...lost, generation: 1 })), /missing or differ/],
    [
      'one is damaged, another is missing',
      (b) => {
        b.set(recordKey(kept), 'bit rot');
        b.lose(key);
      },
      /2 records/,
    ],
    ['the digest is missing', (b) => b.lose(keys.digest), /digest of the checkpoint at entry 2 is missing/],
    [
      'the digest is of the past',
      (b) => b.set(keys.digest, encodeValue({ mark: 1, count: 3, keys: 0, values: 0 })),
      /digest of entry 1 is older than the checkpoint at entry 2/,
    ],
    ['the digest is damaged', (b) => b.set(keys.digest, 'bit rot'), /digest of the checkpoint is damaged/],
  ];
  for (const [name, harm, message] of refused) {
    const bucket = bucketWith();
    harm(bucket);
    t.throws(() => readPartition(bucket.values(), records), { name: 'LoadError', message }, name);
  }
  const damaged = bucketWith();
  damaged.set(key, 'bit rot');
  t.match(
    readPartition(damaged.values(), records),
    { verified: 'verified', quarantined: [key] },
    'damage is the quarantine’s',
  );
  const ofLastRelease = bucketWith();
  ofLastRelease.lose(keys.digest);
  ofLastRelease.lose(keys.clock);
  t.match(readPartition(ofLastRelease.values(), records), { verified: 'no digest', mark: 2 });
  const lastReleaseWroteSince = bucketWith();
  lastReleaseWroteSince.set(keys.checkpoint, encodeValue(3));
  lastReleaseWroteSince.lose(key);
  t.match(readPartition(lastReleaseWroteSince.values(), records), { verified: 'no digest', mark: 3 });
  const overridden = bucketWith();
  overridden.lose(key);
  overridden.set(keys.digest, null);
  t.match(readPartition(overridden.values(), records), { verified: 'overridden', mark: 2 });
  t.end();
});

t.test('the time by which a partition deletes is that of its last entry', (t) => {
  const clockOf = (number: number) => ({ atMs: number * 1000, wallMs: number * 2000, agreedMs: number });
  const dated = (number: number): JournalEntry => entryOf(number, { clock: clockOf(number) });
  t.same(readPartition(bucketOf(3, 2, dated).values(), records).clock, clockOf(3), 'above the mark');
  t.match(readPartition(bucketOf(3, 3, dated).values(), records).clock, clockOf(3), 'at the mark');
  const lastReleaseWroteSince = (number: number): JournalEntry => (number === 3 ? entryOf(3) : dated(number));
  t.equal(readPartition(bucketOf(3, 2, lastReleaseWroteSince).values(), records).clock, undefined);
  t.equal(readPartition([], records).clock, undefined);
  const damaged = bucketOf(3, 3, dated);
  damaged.set(keys.clock, 'bit rot');
  t.equal(readPartition(damaged.values(), records).clock, undefined);
  t.end();
});

t.test('the digest that checkpoints keep is the one that a load makes, whatever they write', (t) => {
  const random = createRandom(7);
  const any = container();
  const others = Array.from({ length: 11 }, (_, index) => container({}, `c${index}`));
  const pool: readonly [ContainerRecord, ...ContainerRecord[]] = [any, ...others];
  const bucket = new MemoryBucket();
  let { digest } = readPartition([], records);
  let number = 0;
  for (let round = 0; round < 200; round++) {
    const entries = Array.from({ length: 1 + random.below(4) }, () => {
      const changes = Array.from({ length: random.below(4) }, (): JournalEntry['changes'][number] => {
        const record = random.pick(pool);
        return [recordKey(record), random.once(3) ? null : encodeValue({ ...record, generation: random.below(1000) })];
      });
      return entryOf(++number, { changes });
    });
    for (const entry of entries) bucket.set(keys.journal(entry.number % limits.journalSlots), encodeEntry(entry));
    for (const { key, value } of batchWrites(entries, digest)) bucket.set(key, value);
    const loaded = readPartition(bucket.values(), records);
    if (loaded.verified !== 'verified') t.fail(`round ${round}: ${loaded.verified}`);
    // A new owner continues with the records that it has read.
    if (random.once(5)) ({ digest } = loaded);
  }
  t.equal(readPartition(bucket.values(), records).mark, number);
  t.end();
});

t.test('a record with a good checksum and the wrong shape is quarantined by its key', (t) => {
  const whole = container({}, 'whole');
  const { spec, ...rest } = container({}, 'other');
  const rows: [string, unknown][] = [
    ['nothing', null],
    ['a number', 7],
    ['a list', []],
    ['an unknown kind', { ...rest, spec, kind: 'toString' }],
    ['no spec', rest],
    ['limits that are no text', { ...rest, spec: { ...spec, mem_limit: 16 } }],
    ['env that is no record of texts', { ...rest, spec: { ...spec, env: { A: 1 } } }],
    ['placed nowhere', { ...rest, spec, placement: { phase: 'placed' } }],
    ['no observation', { ...rest, spec, observed: null }],
    ['a status that is none', { ...rest, spec, observed: { ...rest.observed, status: 'flying' } }],
    ['a history that is no list', { ...rest, spec, history: {} }],
  ];
  for (const [name, value] of rows) {
    const bucket = new MemoryBucket();
    const key = keys.container(acme, rest.id);
    bucket.set(recordKey(whole), encodeValue(whole));
    bucket.set(key, encodeValue(value));
    const loaded = readPartition(bucket.values(), records);
    t.same(loaded.quarantined, [key], name);
    t.same(loaded.records, [whole]);
  }
  t.end();
});
