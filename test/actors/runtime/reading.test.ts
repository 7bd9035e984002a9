/** Reads of a bucket that is written to meanwhile, and the point at which they are complete. */
import t from 'tap';
import { records as format } from '../../../actors/domain/domain.ts';
import { recordKey, type StateRecord } from '../../../actors/domain/records.ts';
import { encodeValue } from '../../../actors/runtime/journal/codec.ts';
import { Reading } from '../../../actors/runtime/reading.ts';
import type { StoredValue } from '../../../actors/runtime/store/store.ts';
import { createSlices } from '../../../lib/time/slices.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import { limits } from '../../../schemas/limits.ts';
import { createMemoryStore, MemoryBucket } from '../support/memory-store.ts';
import { container } from '../support/records.ts';

const slices = createSlices(systemClock);
const { signal } = new AbortController();
const [one, two, three, four] = [container(), container(), container(), container()];
const all = [one, two, three, four];
const [kept, replaced, removed, damaged] = [recordKey(one), recordKey(two), recordKey(three), recordKey(four)];

function bucketWithAll(): MemoryBucket {
  const bucket = new MemoryBucket();
  for (const record of all) bucket.set(recordKey(record), encodeValue(record));
  bucket.set(keys.epoch, 'of the owner before');
  return bucket;
}

/** Replicas that answer one after another, each with its state of the bucket at that time. */
function replicas(...answers: readonly (readonly StoredValue[])[]) {
  const asked: number[] = [];
  return {
    asked,
    store: {
      async *pages(from: number) {
        const values = answers[Math.min(asked.length, answers.length - 1)] ?? [];
        asked.push(from);
        yield Promise.resolve(values.filter(({ revision }) => revision >= from));
      },
    },
  };
}

const contentOf = (reading: Reading<StateRecord>) => ({
  records: new Map([...reading.records].sort(([one], [other]) => (one < other ? -1 : 1))),
  unreadable: [...reading.unreadable.keys()],
  digest: reading.digest.at(1),
});

t.test('a value written behind the place of the read replaces the one that was read', async (t) => {
  const bucket = bucketWithAll();
  const store = createMemoryStore(bucket);
  const reading = new Reading(format);
  await reading.readOn({ store, slices }, signal);
  t.equal(reading.records.size, all.length);

  const changed = { ...two, generation: two.generation + 1 };
  bucket.set(replaced, encodeValue(changed));
  bucket.set(removed, null);
  bucket.set(damaged, '1 00000000 {}');
  bucket.set(keys.checkpoint, 'mark');
  const epoch = bucket.takeEpoch('of this one', bucket.epoch) ?? 0;
  await reading.readTo(epoch, { store, slices }, signal);

  t.same([...reading.records.keys()].sort(), [kept, replaced].sort());
  t.same(reading.records.get(replaced), changed);
  t.same([...reading.unreadable.keys()], [damaged]);
  t.ok(reading.others().some(({ key }) => key === keys.checkpoint));
  const anew = new Reading(format);
  await anew.readTo(epoch, { store, slices }, signal);
  t.same(contentOf(reading), contentOf(anew), 'as if it had been read at once');

  bucket.set(damaged, encodeValue(four));
  await reading.readOn({ store, slices }, signal);
  t.equal(reading.unreadable.size, 0, 'a good value in the place of a damaged one');
});

t.test('a replica that lacks the own epoch is asked again, for what it lacks', async (t) => {
  const bucket = bucketWithAll();
  const before = bucket.values();
  const epoch = bucket.takeEpoch('of this one', bucket.epoch) ?? 0;
  const { store, asked } = replicas(before, [], bucket.values());
  const reading = new Reading(format);
  await reading.readTo(epoch, { store, slices }, signal);
  t.same(asked, [1, epoch, epoch]);
  t.equal(reading.records.size, all.length);
});

t.test('a load ends where no replica has the own epoch, or another process took the partition', async (t) => {
  const bucket = bucketWithAll();
  const stale = replicas(bucket.values());
  const epoch = bucket.takeEpoch('of this one', bucket.epoch) ?? 0;
  await t.rejects(new Reading(format).readTo(epoch, { store: stale.store, slices }, signal), { name: 'StoreError' });
  t.equal(stale.asked.length, 1 + limits.loadTailAttempts);

  bucket.takeEpoch('of another', epoch);
  const moved = replicas(bucket.values());
  await t.rejects(new Reading(format).readTo(epoch, { store: moved.store, slices }, signal), { name: 'StoreError' });
  t.equal(moved.asked.length, 1, 'at once');
});
