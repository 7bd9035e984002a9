/**
 * A partition from one owner to the next: given away, and taken from a dead member. Buckets of the
 * partition and of journals are in memory.
 */
import t from 'tap';
import { decodeValue } from '../../../actors/runtime/journal/codec.ts';
import { decodeMark, type Mark } from '../../../actors/runtime/journal/mark.ts';
import { epochShape, type EpochRecord } from '../../../actors/runtime/store/epoch.ts';
import type { Partition } from '../../../actors/partition.ts';
import type { Store, StoreWrite, WriteOutcome } from '../../../actors/runtime/store/store.ts';
import { records } from '../../../actors/domain/domain.ts';
import { readPartition } from '../../../actors/runtime/journal/load.ts';
import { Reading } from '../../../actors/runtime/reading.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { createSlices } from '../../../lib/time/slices.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { MemberId } from '../../../schemas/ids.ts';
import { until } from '../../support/until.ts';
import { containerId, endless, operation, specOf } from '../support.ts';
import { memoryJournals, successiveMembers } from '../support/journals.ts';
import { createMemorySink, createMemoryStore, MemoryBucket, type Told } from '../support/memory-store.ts';
import { createPartition, readOf, writeOf } from '../support/partition.ts';
import { inWorld } from '../support/in-world.ts';
import { acme } from '../support/records.ts';
import { handOverDrainMs, handOverSettleMs } from '../../../actors/runtime/ownership.ts';

const createAsk = (name: string) =>
  ({
    type: 'container.create',
    tenant: acme,
    id: containerId(),
    op: operation(),
    spec: specOf(name),
    idempotency: null,
  }) as const;

const create = async (partition: Partition, ...names: readonly string[]): Promise<void> => {
  for (const name of names) {
    const { code } = await writeOf(partition, createAsk(name));
    if (code !== 'created') throw new Error(`${name}: ${code}`);
  }
};
const namesIn = ({ view }: Partition): string[] => [...view.tenant(acme).names.keys()].sort();

function markIn(bucket: MemoryBucket): Mark {
  const decoded = decodeMark(bucket.get(keys.checkpoint) ?? Buffer.from(''));
  if (!decoded.ok) throw new Error(decoded.fault);
  return decoded.value;
}
function ownerIn(bucket: MemoryBucket): EpochRecord {
  const decoded = decodeValue(bucket.get(keys.epoch) ?? '', epochShape);
  if (!decoded.ok) throw new Error(decoded.fault);
  return decoded.value;
}

/** A bucket, and members that have it one after the other. */
function place(told: Told[] = []) {
  const bucket = new MemoryBucket();
  const journals = new Map<MemberId, MemoryBucket>();
  const nextMember = successiveMembers(journals);
  const events = createMemorySink(told);
  const open = (more: Partial<Parameters<typeof createPartition>[0]> = {}): Partition =>
    createPartition({ store: createMemoryStore(bucket), events, ...nextMember(), ...more });
  const start = async (more: Partial<Parameters<typeof createPartition>[0]> = {}): Promise<Partition> => {
    const partition = open(more);
    await partition.start();
    return partition;
  };
  return { bucket, journals, open, start };
}

/** The same store, whose batches wait while it is shut. */
function gated(bucket: MemoryBucket) {
  const store = createMemoryStore(bucket);
  let opened: Promise<void> = Promise.resolve();
  let open = (): void => {};
  const batches: (readonly StoreWrite[])[] = [];
  return {
    store: {
      ...store,
      putBatch: async (writes, epoch): Promise<WriteOutcome> => {
        await opened;
        batches.push(writes);
        return store.putBatch(writes, epoch);
      },
    } satisfies Store,
    batches,
    shut: () => void (opened = new Promise((resolve) => (open = resolve))),
    open: () => open(),
  };
}

t.test('the mark names the journal before the first commit is in it', async (t) => {
  const { bucket, journals, start } = place();
  const partition = await start();
  t.same(markIn(bucket), { number: 0, journals: ['member-1'] });
  t.equal(journals.get('member-1' as MemberId)?.values().length, 1, 'its fence');
  partition.drop();
});

t.test('records read before the owner died, and before it wrote more, are brought up to date', async (t) => {
  const { bucket, start } = place();
  const first = await start();
  await create(first, 'a', 'b');
  const reading = new Reading(records);
  const { pages } = createMemoryStore(bucket);
  await reading.readOn({ store: { pages }, slices: createSlices(systemClock) }, new AbortController().signal);
  await create(first, 'c');
  const [id = containerId()] = [...first.view.tenant(acme).containers.keys()];
  await writeOf(first, { type: 'container.delete', tenant: acme, id, op: operation() });
  await until('checkpointed', () => markIn(bucket).number === first.last);
  await create(first, 'd');
  first.drop();
  let loads = 0;
  const next = await start({
    readAhead: async () => {
      loads++;
      return Promise.resolve(reading);
    },
  });
  t.equal(loads, 1, 'nothing was odd');
  t.same(namesIn(next), ['b', 'c', 'd']);
  next.drop();
});

t.test('a partition that is given away needs no journal', async (t) => {
  const { bucket, journals, start } = place();
  const first = await start();
  await create(first, 'a', 'b');
  t.equal(await first.release(), true);
  t.same(markIn(bucket), { number: 2, journals: [] });
  t.match(ownerIn(bucket), { released: true });
  t.notOk(first.isServing);
  journals.clear();
  const next = await start();
  t.same(namesIn(next), ['a', 'b']);
  await create(next, 'c');
  t.equal(next.last, 3, 'it goes on with the next commit');
  await next.release();
});

t.test('asks that come while it is given away are answered, or their sender asks the next owner', async (t) => {
  const { start } = place();
  const first = await start();
  await create(first, 'a');
  const late = writeOf(first, createAsk('late'));
  const releasing = first.release();
  const { code } = await late;
  t.equal(await releasing, true);
  const next = await start();
  t.same(namesIn(next), code === 'created' ? ['a', 'late'] : ['a']);
  t.equal(code, 'created', 'it was accepted before');
  await next.release();
});

t.test('the next owner publishes the last events again, under the same ids', async (t) => {
  const told: Told[] = [];
  const { bucket, start } = place(told);
  const ids = (): string[] =>
    told.flatMap(({ payload }) => (JSON.parse(payload) as { id: string }[]).map(({ id }) => id));
  const first = await start();
  await create(first, 'a', 'b');
  await first.release();
  const published = ids();
  t.equal(published.length, 2);
  t.ok(bucket.values().some(({ key, value }) => key.startsWith('events.') && value !== null));
  const next = await start();
  await until('published again', () => ids().length === 4);
  t.same(ids().slice(2), published);
  await create(next, 'c');
  await next.checkpointed();
  await until('nothing is parked', async () => {
    await next.checkpointed();
    return !bucket.values().some(({ key, value }) => key.startsWith('events.') && value !== null);
  });
  await next.release();
});

t.test('a partition that cannot be checkpointed in time is served on', async (t) => {
  const { bucket, open } = place();
  const gate = gated(bucket);
  const done: Record<string, unknown> = {};
  await inWorld(t, 60_000, async ({ clock }) => {
    const partition = open({ store: gate.store, clock });
    await partition.start();
    await create(partition, 'a');
    gate.shut();
    await create(partition, 'b');
    const startMs = clock.monotonicMs();
    done['released'] = await partition.release();
    done['ms'] = clock.monotonicMs() - startMs;
    done['isServing'] = partition.isServing;
    await create(partition, 'c');
    done['names'] = namesIn(partition);
    done['owner'] = ownerIn(bucket).released;
    gate.open();
    await partition.checkpointed();
    done['again'] = await partition.release();
  });
  t.match(done, { released: false, isServing: true, names: ['a', 'b', 'c'], again: true });
  t.not(done['owner'], true, 'no other may take it meanwhile');
  t.ok(Number(done['ms']) <= handOverDrainMs + handOverSettleMs + 10, `after ${String(done['ms'])} ms`);
  t.match(markIn(bucket), { journals: [] });
});

t.test('turns that wait while a hand-over fails are run', async (t) => {
  const { bucket, open } = place();
  const gate = gated(bucket);
  let code: string | undefined;
  await inWorld(t, 60_000, async ({ clock }) => {
    const partition = open({ store: gate.store, clock });
    await partition.start();
    gate.shut();
    await create(partition, 'a');
    const releasing = partition.release();
    while (partition.isServing) await new Promise((resolve) => setTimeout(resolve, 10));
    const waiting = writeOf(partition, createAsk('waits'));
    if (await releasing) return;
    ({ code } = await waiting);
  });
  t.equal(code, 'created');
  gate.open();
});

t.test('a partition that is taken from a dead member has its commits', async (t) => {
  const { bucket, start } = place();
  const gate = gated(bucket);
  const dead = await start({ store: gate.store });
  await create(dead, 'a');
  gate.shut();
  await create(dead, 'b', 'c');
  t.match(markIn(bucket), { journals: ['member-1'] });
  const next = await start();
  t.same(namesIn(next), ['a', 'b', 'c']);
  t.equal(next.last, 3);
  t.match(markIn(bucket), { journals: { 0: 'member-2' } }, 'its own journal is named first');
  await create(next, 'd');
  // It dies too, before or after its checkpoint.
  const third = await start();
  t.same(namesIn(third), ['a', 'b', 'c', 'd']);
  await third.checkpointed();
  t.same(markIn(bucket), { number: 4, journals: ['member-3'] }, 'the others are not needed any more');
  await third.release();
  dead.drop();
  next.drop();
});

t.test('the mark names the journal of a dead member until its commits are checkpointed', async (t) => {
  const { bucket, start } = place();
  const [first, second] = [gated(bucket), gated(bucket)];
  const dead = await start({ store: first.store });
  first.shut();
  await create(dead, 'a', 'b');
  // The next owner puts its mark, and dies before it has checkpointed anything.
  const store: Store = { ...second.store, putBatch: async () => new Promise<never>(() => {}) };
  const next = await start({ store });
  await create(next, 'c');
  t.same(markIn(bucket), { number: 0, journals: ['member-2', 'member-1'] });
  const third = await start();
  t.same(namesIn(third), ['a', 'b', 'c']);
  t.equal(await third.release(), true);
  dead.drop();
  next.drop();
});

t.test('a damaged journal keeps a partition from being served', async (t) => {
  const { bucket, journals, open } = place();
  const gate = gated(bucket);
  const dead = open({ store: gate.store });
  await dead.start();
  gate.shut();
  await create(dead, 'a', 'b');
  journals.get('member-1' as MemberId)?.set(keys.entry(2), 'bit rot');
  const unloadable: unknown[] = [];
  const next = open({ onUnloadable: (_, error) => unloadable.push(error) });
  await next.start();
  t.notOk(next.isServing);
  t.match(unloadable, [{ message: /the journal of member member-1: entry 2 is missing or damaged/ }]);
  t.match(ownerIn(bucket), { released: true }, 'another may reach another replica');
  dead.drop();
});

t.test('the own commits are loaded from memory', async (t) => {
  const { bucket } = place();
  const journals = memoryJournals();
  const gate = gated(bucket);
  const first = createPartition({ store: gate.store, events: createMemorySink([]), journals });
  await first.start();
  gate.shut();
  await create(first, 'a', 'b');
  first.drop();
  const again = createPartition({ store: createMemoryStore(bucket), events: createMemorySink([]), journals });
  await again.start();
  t.same(namesIn(again), ['a', 'b']);
  await create(again, 'c');
  t.equal(await again.release(), true);
  t.same(markIn(bucket), { number: 3, journals: [] });
});

t.test('a checkpoint frees the slots of its commits', async (t) => {
  const bucket = new MemoryBucket();
  const journals = memoryJournals();
  const journal = await journals.open(endless.member);
  const gate = gated(bucket);
  const partition = createPartition({ store: gate.store, events: createMemorySink([]), journals });
  await partition.start();
  gate.shut();
  await create(partition, 'a', 'b');
  t.equal(journal.entries, 2);
  gate.open();
  await partition.checkpointed();
  t.equal(journal.entries, 0);
  await partition.release();
});

/** A partition whose checkpoints and journal an owner has acknowledged, up to `last` and beyond. */
async function wentBack(of: 'the journal' | 'the bucket') {
  const found: string[] = [];
  const { bucket, journals, start } = place();
  const own = memoryJournals(journals, { onWentBack: (_, { seen, got }) => found.push(`journal ${got - seen}`) });
  const partition = await start({
    journals: own,
    onWentBack: ({ number }, { seen, got }) => void found.push(`partition ${number}: ${got <= seen}`),
  });
  await create(partition, 'a', 'b');
  await partition.checkpointed();
  const stores = { 'the journal': journals.values().next().value, 'the bucket': bucket };
  const copy = stores[of]?.copy() ?? { values: [], sequence: 0 };
  await create(partition, 'c', 'd');
  await partition.checkpointed();
  stores[of]?.goBack(copy);
  return { partition, found };
}

t.test('an owner whose store went back acknowledges nothing more', async (t) => {
  const refused = async (partition: Partition): Promise<void> => {
    const answer = await writeOf(partition, createAsk('refused'));
    t.equal(answer.code, 'unavailable');
    t.match(answer.body, /the store went back in time/);
    t.same(namesIn(partition).slice(0, 4), ['a', 'b', 'c', 'd']);
    partition.drop();
  };
  await t.test('noticed by a put of the journal', async (t) => {
    const { partition, found } = await wentBack('the journal');
    let isAnswered = false;
    void writeOf(partition, createAsk('late'), 500).then(
      () => (isAnswered = true),
      () => {},
    );
    await until('noticed', () => found.length > 0);
    t.same(found, ['journal -1']);
    t.notOk(isAnswered);
    await refused(partition);
  });
  await t.test('noticed by a batch of a checkpoint', async (t) => {
    const { partition, found } = await wentBack('the bucket');
    await create(partition, 'e');
    await partition.checkpointed();
    t.same(found, ['partition 0: true']);
    await refused(partition);
  });
});

t.test('an owner stores all of its memory again, and only then gives the partition away', async (t) => {
  const { bucket, start } = place();
  const gate = gated(bucket);
  const first = await start({ store: gate.store });
  await create(first, 'a', 'b', 'gone');
  await first.checkpointed();
  const copy = bucket.copy();
  const idOf = (name: string) => first.view.tenant(acme).names.get(name) ?? containerId();
  await create(first, 'c');
  await writeOf(first, { type: 'container.delete', tenant: acme, id: idOf('gone'), op: operation() });
  await first.checkpointed();
  const before = first.last;
  bucket.goBack(copy);
  // Its batch shows it. The turn after that ran, and is in no journal that counts.
  await create(first, 'd');
  await first.checkpointed();
  const late = createAsk('late');
  t.equal((await writeOf(first, late)).code, 'unavailable');
  gate.batches.splice(0);
  gate.shut();
  const releasing = first.release();
  const read = await readOf(first, { type: 'container.list', tenant: acme, before: null, limit: 10 });
  t.equal(read.code, 'ok', 'reads go on');
  gate.open();
  t.equal(await releasing, true);
  t.equal(readPartition(bucket.values(), [], records).last, before + 1);
  t.same(markIn(bucket), { number: before + 1, journals: [] });
  t.match(ownerIn(bucket), { released: true });
  const next = await start();
  t.same(namesIn(next), ['a', 'b', 'c', 'd'], 'what was deleted stays deleted');
  t.equal((await writeOf(next, late)).code, 'created');
  await next.release();
});

t.test('wherever the owner dies, what it had begun to store is loaded whole or not at all', async (t) => {
  let [whole, refused] = [0, 0];
  for (let most = 0; most < 12; most++) {
    const { bucket, start } = place();
    const memory = createMemoryStore(bucket);
    const state = { left: Infinity };
    const store: Store = {
      ...memory,
      putBatch: async (writes, epoch) =>
        state.left-- > 0 ? memory.putBatch(writes, epoch) : new Promise<never>(() => {}),
    };
    const first = await start({ store });
    await create(first, 'a', 'b');
    await first.checkpointed();
    const copy = bucket.copy();
    await create(first, 'c');
    await first.checkpointed();
    bucket.goBack(copy);
    await create(first, 'd');
    await first.checkpointed();
    state.left = most;
    const releasing = first.release();
    await Promise.race([releasing, sleep(30)]);
    first.drop();
    const unloadable: unknown[] = [];
    const next = await start({ onUnloadable: (_, error) => unloadable.push(error) });
    if (next.isServing) {
      whole++;
      t.same(namesIn(next), ['a', 'b', 'c', 'd']);
    } else {
      refused++;
      t.match(unloadable, [{ name: 'LoadError' }]);
    }
    next.drop();
  }
  t.ok(whole > 0 && refused > 1, `${whole} loaded, ${refused} refused`);
});

t.test('another owner that took the partition meanwhile wins', async (t) => {
  const { bucket, start } = place();
  const lost: number[] = [];
  const first = await start({ onLost: ({ number }) => lost.push(number) });
  await create(first, 'a');
  await first.checkpointed();
  const copy = bucket.copy();
  await create(first, 'b');
  await first.checkpointed();
  bucket.goBack(copy);
  await create(first, 'c');
  await first.checkpointed();
  bucket.takeEpoch('another', bucket.epoch);
  const values = bucket.values();
  t.equal(await first.release(), true);
  t.same(lost, [0]);
  t.same(bucket.values(), values, 'it writes nothing');
});
