/** Moving one's own epoch when it is read from a leader that is cut off. */
import t from 'tap';
import { moveEpoch, type EpochRecord } from '../../../../actors/runtime/store/epoch.ts';
import type { MemberId } from '../../../../schemas/ids.ts';
import { inWorld } from '../../support/in-world.ts';
import { MemoryBucket, createMemoryStore } from '../../support/memory-store.ts';

t.test('values from before the own epoch are no sign of its loss', async (t) => {
  const bucket = new MemoryBucket();
  const store = createMemoryStore(bucket);
  const past = { revision: bucket.takeEpoch('a former owner', 0) ?? 0, value: 'a former owner' };
  const epoch = bucket.takeEpoch('own', past.revision) ?? 0;
  let reads = 0;
  const failures: unknown[] = [];
  const record: EpochRecord = { token: 'next', owner: 'm1' as MemberId, takenAtMs: 0, released: false };
  const moved = await moveEpoch(
    { ...store, readEpoch: () => (reads++ === 0 ? Promise.resolve(past) : store.readEpoch()) },
    record,
    {
      from: { epoch },
      signal: AbortSignal.timeout(10_000),
      onFailure: (error) => failures.push(error),
    },
  );
  t.same(moved, { kind: 'moved', epoch: bucket.epoch });
  t.equal(failures.length, 1);
  t.ok(bucket.epoch > epoch);
});

t.test('an epoch that stays before one’s own is lost: the store went back', async (t) => {
  const bucket = new MemoryBucket();
  const past = bucket.takeEpoch('a former owner', 0) ?? 0;
  const copy = bucket.copy();
  const epoch = bucket.takeEpoch('own', past) ?? 0;
  bucket.goBack(copy);
  await inWorld(t, 60_000, async () => {
    const record: EpochRecord = { token: 'next', owner: 'm1' as MemberId, takenAtMs: 0 };
    const signal = new AbortController().signal;
    const moved = await moveEpoch(createMemoryStore(bucket), record, { from: { epoch }, signal, onFailure: () => {} });
    t.same(moved, { kind: 'refused' });
    t.equal(bucket.epoch, past);
  });
});
