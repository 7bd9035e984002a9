/**
 * The format of records, and loads of a bucket that is whole, damaged or incomplete.
 * read-journal.test.ts has the journals.
 */
import t from 'tap';
import { batchWrites, clockShape } from '../../../../actors/runtime/journal/checkpoint.ts';
import {
  anyShape,
  bufferOf,
  bytesOf,
  checksumOf,
  decodeValue,
  encodeValue,
  openSealed,
  type Commit,
} from '../../../../actors/runtime/journal/codec.ts';
import { records } from '../../../../actors/domain/domain.ts';
import { digestShape, RecordsDigest } from '../../../../actors/runtime/journal/digest.ts';
import { LoadError } from '../../../../actors/runtime/journal/load-error.ts';
import { readPartition } from '../../../../actors/runtime/journal/load.ts';
import { decodeMark, type Mark } from '../../../../actors/runtime/journal/mark.ts';
import type { EntryEvents } from '../../../../actors/runtime/events/event-outbox.ts';
import { recordKey } from '../../../../actors/domain/records.ts';
import { keys } from '../../../../schemas/records/buckets.ts';
import type { ContainerRecord } from '../../../../schemas/api/container.ts';
import type { EventBody } from '../../../../schemas/api/event.ts';
import type { MemberId } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import { containerId, specOf } from '../../support.ts';
import { createRandom } from '../../support/random.ts';
import { outcome, tenantCommit } from '../../support/commits.ts';
import { MemoryBucket } from '../../support/memory-store.ts';
import { acme, container, h1, hostRecord } from '../../support/records.ts';
import { secretRecord } from '../../support/secrets.ts';

const harmed =
  (harm: (bucket: MemoryBucket) => void) =>
  (stored: Stored): Stored => {
    harm(stored.bucket);
    return stored;
  };
const without =
  (number: number) =>
  ({ bucket, commits }: Stored): Stored => ({ bucket, commits: commits.filter((commit) => commit.number !== number) });

const owner = 'owner' as MemberId;
const sums = { count: 3, keys: 0, values: 0 };

t.test('codec', (t) => {
  const odd = { text: 'é \u2028 \ud800 \n \t "', deep: [{ a: null }] };
  t.same(decodeValue(encodeValue(odd), anyShape), { ok: true, value: odd });
  t.same(decodeValue(bufferOf(encodeValue(odd)), anyShape), { ok: true, value: odd }, 'as bytes');
  t.equal(bytesOf(encodeValue(odd)), bufferOf(encodeValue(odd)).length);
  t.equal(checksumOf(encodeValue(odd)), checksumOf(bufferOf(encodeValue(odd))));

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
    t.match(decodeValue(Buffer.from(text), anyShape), { ok: false, fault: new RegExp(fault) }, name);
  }
  for (let cut = 0; cut < whole.length; cut++) t.notOk(decodeValue(whole.slice(0, cut), anyShape).ok, `cut at ${cut}`);

  // Written whole, but by a program with a fault, or not by this one.
  t.same(decodeValue(whole, clockShape), { ok: false, fault: 'shape' });
  const newer = { atMs: 1, wallMs: 1, agreedMs: 1, mark: 1, added: true };
  t.same(decodeValue(encodeValue(newer), clockShape), { ok: true, value: newer }, 'of a newer release');

  const other = encodeValue({ a: 1 }, '2');
  t.same(decodeValue(other, anyShape, '2'), { ok: true, value: { a: 1 } });
  t.match(decodeValue(other, anyShape), { ok: false, fault: 'format "2"' }, 'not for those who know the common one');
  t.notOk(openSealed(whole, '2').ok);
  t.end();
});

const markAt = (number: number): Mark => ({ number, journals: [owner] });

interface Stored {
  readonly bucket: MemoryBucket;
  /** All that the journal still has. */
  readonly commits: readonly Commit[];
}

/** A partition after so many commits, of which those up to the mark are checkpointed. */
function storedOf(last: number, mark: number, commitOf: (number: number) => Commit = tenantCommit): Stored {
  const bucket = new MemoryBucket();
  const digest = new RecordsDigest(records);
  const commits = Array.from({ length: last }, (_, index) => commitOf(index + 1));
  for (const commit of commits.slice(0, mark)) {
    for (const { key, value } of batchWrites([commit], digest, markAt)) bucket.set(key, value);
  }
  return { bucket, commits };
}

const load = ({ bucket, commits }: Stored) => readPartition(bucket.values(), commits, records);

t.test('an empty bucket, and ones that are whole', (t) => {
  t.match(readPartition([], [], records), { records: [], pending: [], mark: 0, last: 0, journals: [] });
  for (const [last, mark] of [
    [1, 0],
    [5, 5],
    [5, 2],
    [1500, 600],
  ] as const) {
    const stored = storedOf(last, mark);
    const ways: Record<string, readonly Commit[]> = {
      'in their order': stored.commits,
      'in another order': stored.commits.toReversed(),
      'some twice, which were carried': [...stored.commits, ...stored.commits.slice(-3)],
      'those above the mark alone': stored.commits.slice(mark),
    };
    for (const [name, commits] of Object.entries(ways)) {
      const loaded = load({ ...stored, commits });
      t.match(loaded, { mark, last }, `${last} commits, ${mark} checkpointed: ${name}`);
      t.same(
        loaded.pending.map(({ number }) => number),
        Array.from({ length: last - mark }, (_, index) => mark + 1 + index),
      );
      t.match(loaded.records, [{ number: last }], 'the newest value');
      t.same(
        loaded.checkpointed.map(({ number }) => number),
        commits === ways['those above the mark alone'] ? [] : Array.from({ length: mark }, (_, index) => index + 1),
      );
    }
  }
  t.end();
});

t.test('events that were parked are there for the next owner, and a key of them that is damaged is named', (t) => {
  const stored = storedOf(5, 5);
  const { bucket } = stored;
  const event = { id: '0-3-0', container_id: 'c', message: null } as EventBody;
  const by = { tenant: null, subject: 'Zoë', token: 'k', address: null };
  const entries: EntryEvents[] = [{ number: 3, events: [{ subject: 'event.acme.c', event, by }] }];
  bucket.set(keys.events(3), encodeValue(entries));
  bucket.set(keys.events(4), 'rot');
  bucket.set(keys.events(5), null);
  t.match(load(stored), {
    parked: [{ key: keys.events(3), entries }],
    damagedEvents: [keys.events(4)],
    records: [{ number: 5 }],
  });
  t.end();
});

t.test('a partition that may have lost an acknowledged commit is not served', (t) => {
  const rows: [string, Stored, (stored: Stored) => Stored, RegExp][] = [
    ['a damaged mark', storedOf(5, 2), harmed((b) => b.set(keys.checkpoint, 'rot')), /mark is damaged/],
    ['a lost mark', storedOf(9, 4), harmed((b) => b.lose(keys.checkpoint)), /mark 0 is older than the digest/],
    ['the first above the mark is lost', storedOf(5, 2), without(3), /commit 3 is missing/],
    ['one between is lost', storedOf(5, 2), without(4), /commit 4 is missing/],
    ['the first of all is lost', storedOf(2, 0), without(1), /commit 1 is missing/],
  ];
  for (const [name, stored, harm, message] of rows) {
    load(stored);
    try {
      load(harm(stored));
      t.fail(`${name}: served`);
    } catch (error) {
      t.ok(error instanceof LoadError, name);
      t.match((error as Error).message, message, name);
    }
  }
  t.match(load(without(3)(storedOf(9, 8))), { last: 9 }, 'a commit below the mark is not needed');
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
  const commits = [
    tenantCommit(1, {
      changes: [
        [recordKey(goes), null],
        [recordKey(comes), encodeValue(comes)],
        [recordKey(stays), encodeValue(renamed)],
      ],
      operations: [outcome()],
    }),
  ];
  bucket.set(keys.operations(0), encodeValue([outcome(), outcome()]));
  bucket.set('ops.9', 'rot');
  const loaded = load({ bucket, commits });
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
  const digest = new RecordsDigest(records);
  const writes = batchWrites(
    [
      tenantCommit(1, { operations: [outcome()] }),
      tenantCommit(2, { changes: [['container.acme.x', Buffer.from('x')]] }),
      tenantCommit(3, { changes: [['container.acme.x', null]], operations: [outcome()] }),
    ],
    digest,
    markAt,
  );
  t.same(
    writes.map(({ key }) => key),
    [keys.tenant(acme), 'container.acme.x', keys.operations(3), keys.digest, keys.clock, keys.checkpoint],
  );
  t.equal(writes[1]?.value, null);
  t.equal(writes[2]?.ttlMs, limits.operationTtlMs);
  t.same(decodeValue(writes[3]?.value ?? '', anyShape), { ok: true, value: digest.at(3) });
  t.equal(digest.at(3).count, 1, 'the tenant; the container is gone');
  t.same(decodeMark(writes[5]?.value ?? Buffer.from('')), { ok: true, value: markAt(3) });
  t.end();
});

t.test('records are those of the checkpoint, or the load is refused', (t) => {
  const [kept, lost, swapped] = ['kept', 'lost', 'swapped'].map((name) => container({}, name)) as [
    ContainerRecord,
    ContainerRecord,
    ContainerRecord,
  ];
  const change = (record: ContainerRecord): Commit['changes'][number] => [recordKey(record), encodeValue(record)];
  const storedWith = (): Stored =>
    storedOf(3, 2, (number) =>
      tenantCommit(number, { changes: number === 1 ? [kept, lost, swapped].map(change) : [] }),
    );
  const key = recordKey(lost);
  t.equal(load(storedWith()).isOverridden, false);
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
      'the digest and the time are missing',
      (b) => {
        b.lose(keys.digest);
        b.lose(keys.clock);
      },
      /digest of the checkpoint at entry 2 is missing/,
    ],
    [
      'the digest is of the past',
      (b) => b.set(keys.digest, encodeValue({ mark: 1, ...sums, added: sums })),
      /digest of entry 1 is older than the checkpoint at entry 2/,
    ],
    ['the digest is damaged', (b) => b.set(keys.digest, 'bit rot'), /digest of the checkpoint is damaged/],
  ];
  for (const [name, harm, message] of refused) {
    const stored = harmed(harm)(storedWith());
    t.throws(() => load(stored), { name: 'LoadError', message }, name);
  }
  t.match(
    load(harmed((b) => b.set(key, 'bit rot'))(storedWith())),
    { isOverridden: false, quarantined: [key] },
    'damage is the quarantine’s',
  );
  const overridden = harmed((b) => {
    b.lose(key);
    b.set(keys.digest, null);
  });
  t.match(load(overridden(storedWith())), { isOverridden: true, mark: 2 });
  t.end();
});

t.test('records of newer kinds are counted apart', (t) => {
  const secret = secretRecord('db', 1);
  const key = recordKey(secret);
  const storedWith = (): Stored =>
    storedOf(2, 2, (number) => tenantCommit(number, { changes: number === 1 ? [[key, encodeValue(secret)]] : [] }));
  const stored = storedWith()
    .bucket.values()
    .find((one) => one.key === keys.digest);
  const digest = decodeValue(stored?.value ?? '', digestShape);
  if (!digest.ok) throw new Error(digest.fault);
  t.match(digest.value, { count: 0, added: { count: 1 } });
  t.match(load(storedWith()), { isOverridden: false, quarantined: [] });
  const lost = harmed((b) => b.lose(key));
  t.throws(() => load(lost(storedWith())), { name: 'LoadError', message: /1 records .* and 0 records/ });
  t.end();
});

t.test('records that digests of before 0.2.0 leave out count where a digest counts them', (t) => {
  const file = { kind: 'file', tenant: acme, sha256: 'ab', content: 'YQ==', bytes: 1, updatedAtMs: 1 } as const;
  const key = recordKey(file);
  const storedWith = (): Stored =>
    storedOf(2, 2, (number) => tenantCommit(number, { changes: number === 1 ? [[key, encodeValue(file)]] : [] }));
  t.match(load(storedWith()), { isOverridden: false, quarantined: [] });
  const lost = harmed((b) => b.lose(key));
  t.throws(() => load(lost(storedWith())), { name: 'LoadError', message: /1 records .* and 0 records/ });
  const none = { count: 0, keys: 0, values: 0 };
  const ofLast = harmed((b) => b.set(keys.digest, encodeValue({ mark: 2, ...none, added: none })));
  t.match(load(ofLast(storedWith())), { isOverridden: false }, 'a release before 0.2.0 has written a checkpoint since');
  t.end();
});

t.test('the time by which a partition deletes is that of its last entry', (t) => {
  const clockOf = (number: number) => ({ atMs: number * 1000, wallMs: number * 2000, agreedMs: number });
  const dated = (number: number): Commit => tenantCommit(number, { clock: clockOf(number) });
  t.same(load(storedOf(3, 2, dated)).clock, clockOf(3), 'above the mark');
  t.match(load(storedOf(3, 3, dated)).clock, clockOf(3), 'at the mark');
  t.equal(readPartition([], [], records).clock, undefined);
  t.equal(load(harmed((b) => b.set(keys.clock, 'bit rot'))(storedOf(3, 3, dated))).clock, undefined);
  t.end();
});

t.test('the digest that checkpoints keep is the one that a load makes, whatever they write', (t) => {
  const random = createRandom(7);
  const any = container();
  const others = Array.from({ length: 11 }, (_, index) => container({}, `c${index}`));
  const pool: readonly [ContainerRecord, ...ContainerRecord[]] = [any, ...others];
  const bucket = new MemoryBucket();
  let { digest } = readPartition([], [], records);
  let number = 0;
  for (let round = 0; round < 200; round++) {
    const entries = Array.from({ length: 1 + random.below(4) }, () => {
      const changes = Array.from({ length: random.below(4) }, (): Commit['changes'][number] => {
        const record = random.pick(pool);
        return [recordKey(record), random.once(3) ? null : encodeValue({ ...record, generation: random.below(1000) })];
      });
      return tenantCommit(++number, { changes });
    });
    for (const { key, value } of batchWrites(entries, digest, markAt)) bucket.set(key, value);
    const loaded = load({ bucket, commits: entries });
    // A new owner continues with the records that it has read.
    if (random.once(5)) ({ digest } = loaded);
  }
  t.equal(load({ bucket, commits: [] }).mark, number);
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
    const loaded = load({ bucket, commits: [] });
    t.same(loaded.quarantined, [key], name);
    t.same(loaded.records, [whole]);
  }
  t.end();
});
