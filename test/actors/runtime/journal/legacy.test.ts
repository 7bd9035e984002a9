/** The ring of release 0.1.0 in a partition's bucket: how it is read, and how it is left. */
import t from 'tap';
import { records } from '../../../../actors/domain/domain.ts';
import { batchWrites } from '../../../../actors/runtime/journal/checkpoint.ts';
import { encodeValue } from '../../../../actors/runtime/journal/codec.ts';
import { RecordsDigest } from '../../../../actors/runtime/journal/digest.ts';
import { decodeLegacyEntry, legacyRing, readLegacyJournal } from '../../../../actors/runtime/journal/legacy.ts';
import { LoadError } from '../../../../actors/runtime/journal/load-error.ts';
import { readPartition } from '../../../../actors/runtime/journal/load.ts';
import { encodeMark } from '../../../../actors/runtime/journal/mark.ts';
import { runAtOnce } from '../../../../lib/time/slices.ts';
import { keys } from '../../../../schemas/records/buckets.ts';
import type { EventBody } from '../../../../schemas/api/event.ts';
import type { TenantId } from '../../../../schemas/ids.ts';
import type { SuccessCode } from '../../../../schemas/errors.ts';
import { encodeLegacyEntry, legacyKey } from '../../support/legacy.ts';
import { asRead, outcome, tenantCommit } from '../../support/commits.ts';
import { MemoryBucket } from '../../support/memory-store.ts';

/** Slots of the ring. */
const R = 1024;

const decode = (text: string) => decodeLegacyEntry(Buffer.from(text));

t.test('an entry of release 0.1.0 is read', (t) => {
  const commits = [
    tenantCommit(7, { operations: [outcome()], changes: [...tenantCommit(7).changes, ['container.acme.x', null]] }),
    tenantCommit(1, { changes: [] }),
    tenantCommit(2, { clock: { atMs: 1, wallMs: 2, agreedMs: 3 } }),
    tenantCommit(3, { operations: [{ ...outcome(), code: 'deferred' as SuccessCode }] }),
  ];
  const by = { tenant: 'acme' as TenantId, subject: 'Zoë', token: 'k', address: null };
  const events = [{ subject: 'event.acme.a', event: { id: '0-4-0' } as EventBody, by }];
  const [ring] = legacyRing(1, [{ number: 1, events }]);
  t.match(
    decode(String(ring?.value)),
    { ok: true, value: { number: 1, events } },
    'with authors, in a ring that is left',
  );
  for (const commit of commits) t.same(decode(encodeLegacyEntry(commit)), { ok: true, value: asRead(commit) });
  // The bytes of that release.
  const stored = '1 d9b96700 {"number":3,"keys":["host.a","host.b"],"operations":[],"events":[]}\n1 00000000 {}\n-';
  const changes = [
    ['host.a', Buffer.from('1 00000000 {}')],
    ['host.b', null],
  ];
  t.match(decode(stored), { ok: true, value: { number: 3, changes } });
  const whole = encodeLegacyEntry(tenantCommit(1));
  const damaged: [string, string, RegExp][] = [
    ['empty', '', /format/],
    ['another format', `2${whole.slice(1)}`, /format/],
    ['a flipped bit', whole.replace('number', 'mumber'), /checksum/],
    ['cut short', whole.slice(0, -1), /checksum/],
    ['another value', encodeValue({ a: 1 }), /shape/],
    ['a value that is two', encodeLegacyEntry(tenantCommit(1, { changes: [['a', Buffer.from('1\n2')]] })), /length/],
  ];
  for (const [name, text, fault] of damaged) t.match(decode(text), { ok: false, fault }, name);
  t.end();
});

/**
 * A bucket of that release after so many commits, of which those up to the mark are checkpointed.
 */
function bucketOf(last: number, mark: number): MemoryBucket {
  const bucket = new MemoryBucket();
  const digest = new RecordsDigest(records);
  for (let number = 1; number <= last; number++) {
    const commit = tenantCommit(number);
    bucket.set(legacyKey(number), encodeLegacyEntry(commit));
    if (number > mark) continue;
    const writes = batchWrites([commit], digest, (at) => ({ number: at, journals: 'in the bucket' }));
    for (const { key, value } of writes) bucket.set(key, value);
  }
  return bucket;
}

const load = (bucket: MemoryBucket) => readPartition(bucket.values(), [], records);

t.test('rings that are whole', (t) => {
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
    const loaded = load(bucketOf(last, mark));
    t.match(loaded, { mark, last, journals: 'in the bucket' }, `${last} entries, ${mark} checkpointed`);
    t.same(
      loaded.pending.map(({ number }) => number),
      Array.from({ length: last - mark }, (_, index) => mark + 1 + index),
    );
    t.match(loaded.records, [{ number: last }], 'the newest value');
    t.equal(loaded.checkpointed.length, Math.min(last, R) - (last - mark));
  }
  t.end();
});

t.test('what may have lost an acknowledged entry is not served', (t) => {
  const rows: [string, MemoryBucket, (bucket: MemoryBucket) => void, RegExp][] = [
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
    load(bucket);
    harm(bucket);
    try {
      load(bucket);
      t.fail(`${name}: served`);
    } catch (error) {
      t.ok(error instanceof LoadError, name);
      t.match((error as Error).message, message, name);
    }
  }
  const below = bucketOf(9, 8);
  below.set(keys.journal(3), 'rot');
  t.match(load(below), { last: 9 }, 'a damaged entry below the mark is not needed');
  t.end();
});

t.test('a mark that names journals keeps entries of the ring from being read', (t) => {
  const bucket = bucketOf(5, 0);
  bucket.set(keys.checkpoint, encodeMark({ number: 0, journals: [] }));
  t.match(load(bucket), { last: 0, pending: [], records: [] });
  t.end();
});

t.test('a ring that is left empty is whole for release 0.1.0', (t) => {
  for (const mark of [0, 1, 5, R - 1, R, R + 1, 3 * R + 7]) {
    const bucket = bucketOf(Math.min(mark, 3), 0);
    const writes = legacyRing(mark, []);
    t.equal(writes.length, Math.min(mark, R), `${mark}: an entry for each slot that was used`);
    for (const { key, value } of writes) bucket.set(key, value);
    const { pending, checkpointed } = runAtOnce(readLegacyJournal(bucket.values(), mark));
    t.same(pending, [], `${mark}: nothing above the mark`);
    t.equal(checkpointed.at(-1)?.number ?? 0, mark);
    t.ok(checkpointed.every(({ changes, operations, events }) => [...changes, ...operations, ...events].length === 0));
    // It goes on with the next entry.
    bucket.set(legacyKey(mark + 1), encodeLegacyEntry(tenantCommit(mark + 1)));
    t.match(runAtOnce(readLegacyJournal(bucket.values(), mark)).pending, [{ number: mark + 1 }]);
  }
  t.end();
});
