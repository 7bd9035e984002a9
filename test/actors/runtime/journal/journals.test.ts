/** The journals that a process has to do with, in memory. */
import t from 'tap';
import { type Commit, encodeSection } from '../../../../actors/runtime/journal/codec.ts';
import type { Journal } from '../../../../actors/runtime/journal/journal.ts';
import type { Journals, JournalsOptions } from '../../../../actors/runtime/journal/journals.ts';
import { LoadError } from '../../../../actors/runtime/journal/load-error.ts';
import type { Store } from '../../../../actors/runtime/store/store.ts';
import type { MemberId } from '../../../../schemas/ids.ts';
import { keys } from '../../../../schemas/records/buckets.ts';
import { until } from '../../../support/until.ts';
import { memoryJournals, quietJournals } from '../../support/journals.ts';
import { createMemoryStore, MemoryBucket } from '../../support/memory-store.ts';
import { createFractions } from '../../support/random.ts';
import { World } from '../../../sim/world/time.ts';
import { noReading } from '../../../../lib/time/cautious-clock.ts';
import { journalReadKeptMs } from '../../../../actors/runtime/journal/journals.ts';

const [one, other] = ['one', 'other'] as [MemberId, MemberId];
const { signal } = new AbortController();

/** Commits one after the other, of one partition each. */
async function put(journal: Journal, ...commits: readonly (readonly [partition: number, number: number])[]) {
  let written = 0;
  for (const [partition, number] of commits) {
    const commit: Commit = { number, changes: [], operations: [], events: [], clock: noReading };
    let isTaken = false;
    journal.ask({
      partition,
      get hasMore() {
        return !isTaken;
      },
      take: () => {
        if (isTaken) return undefined;
        isTaken = true;
        return { commit, section: encodeSection(commit), onWritten: () => written++ };
      },
    });
    const before = written;
    await until('put', () => written > before);
  }
}

const numbersOf = async (journals: Journals, members: readonly MemberId[], partition: number): Promise<number[]> =>
  (await journals.commitsOf(members, partition, signal)).map(({ number }) => number);

/** Two processes over the same buckets; `used` has what was asked of the stores. */
function processes(more: Partial<JournalsOptions> = {}) {
  const buckets = new Map<MemberId, MemoryBucket>();
  const used: string[] = [];
  const sealed: MemberId[] = [];
  const storeOf = (member: MemberId): Store => {
    let bucket = buckets.get(member);
    if (bucket === undefined) buckets.set(member, (bucket = new MemoryBucket()));
    const store = createMemoryStore(bucket);
    return {
      ...store,
      takeEpoch: async (value, expected) => {
        used.push(`take ${member}`);
        return store.takeEpoch(value, expected);
      },
      load: async (...what) => {
        used.push(`load ${member}`);
        return store.load(...what);
      },
    };
  };
  const process = (): Journals => memoryJournals(buckets, { storeOf, onSealed: (id) => sealed.push(id), ...more });
  return { buckets, process, sealed, used: () => used.splice(0) };
}

t.test('the journal of a member is opened once, and another when it is another member', async (t) => {
  const { process, used } = processes();
  const journals = process();
  const [journal, same] = await Promise.all([journals.open(one), journals.open(one)]);
  t.equal(journal, same);
  t.equal(await journals.open(one), journal);
  t.same(used(), ['take one']);
  t.equal(journal.member, one);
  const next = await journals.open(other);
  t.not(next, journal);
  t.same(used(), ['take other']);
  let isPut = false;
  journal.ask({ partition: 1, hasMore: true, take: () => void (isPut = true) });
  await put(next, [1, 1]);
  t.notOk(isPut, 'nothing is put into the one before');
});

t.test('a journal that is there belongs to another process', async (t) => {
  const { process } = processes();
  await process().open(one);
  await t.rejects(process().open(one), /journal of member one can't be opened/);
});

t.test('the own commits come from memory', async (t) => {
  const { process, used } = processes();
  const journals = process();
  const journal = await journals.open(one);
  await put(journal, [1, 7], [2, 3], [1, 8]);
  t.same(await numbersOf(journals, [one], 1), [7, 8]);
  journal.checkpointed(1, 7);
  t.same(await numbersOf(journals, [one], 1), [8]);
  t.same(used(), ['take one'], 'nothing was sealed or read');
});

t.test('the journal of a dead member is sealed and read once for several partitions', async (t) => {
  const { process, used, sealed } = processes();
  const dead = await process().open(one);
  await put(dead, [1, 7], [2, 3], [1, 8]);
  used();
  const journals = process();
  const found = await Promise.all([1, 2, 3].map(async (partition) => numbersOf(journals, [one], partition)));
  t.same(found, [[7, 8], [3], []]);
  t.same(used(), ['take one', 'load one']);
  t.same(sealed, []);
  const late: Commit = { number: 9, changes: [], operations: [], events: [], clock: noReading };
  dead.ask({
    partition: 1,
    hasMore: false,
    take: () => ({ commit: late, section: encodeSection(late), onWritten: () => t.fail('written') }),
  });
  await until('its member hears of it', () => sealed.length > 0);
  t.same(sealed, [one], 'nothing of it is written any more');
  t.same(await numbersOf(process(), [one], 1), [7, 8]);
});

t.test('commits of several journals come in the order in which they are named', async (t) => {
  const { process } = processes();
  await put(await process().open(one), [1, 1], [1, 2]);
  const journals = process();
  await put(await journals.open(other), [1, 3]);
  t.same(await numbersOf(journals, [one, other], 1), [1, 2, 3]);
  t.same(await numbersOf(journals, [other, one], 1), [3, 1, 2]);
  t.same(await numbersOf(journals, [], 1), []);
});

t.test('a journal that is gone refuses the load', async (t) => {
  const { process } = processes();
  await t.rejects(process().commitsOf([one], 1, signal), { name: 'LoadError', message: /member one is gone/ });
});

t.test('a read that failed is done again at the next load, and so is one of a while ago', async (t) => {
  const world = new World();
  const actors = world.process('actors');
  await world.run(createFractions(1), async () => {
    const buckets = new Map<MemberId, MemoryBucket>();
    let loads = 0;
    let isStale = true;
    const journals = memoryJournals(buckets, {
      clock: actors.clock,
      storeOf: (member) => {
        const bucket = buckets.get(member) ?? new MemoryBucket();
        buckets.set(member, bucket);
        const store = createMemoryStore(bucket);
        return {
          ...store,
          load: async (...what) => {
            loads++;
            if (isStale) throw new Error('a stale replica');
            return store.load(...what);
          },
        };
      },
    });
    await memoryJournals(buckets).open(one);
    const read = async (): Promise<unknown> => {
      let outcome: unknown;
      const reading = async () => void (outcome = await numbersOf(journals, [one], 1).catch(String));
      void world.spawn(actors, reading);
      await world.until(() => outcome !== undefined, 1000);
      return outcome;
    };
    t.match(await read(), /stale/);
    isStale = false;
    t.same(await read(), []);
    t.equal(loads, 2);
    await world.until(() => false, journalReadKeptMs / 2);
    t.same(await read(), []);
    t.equal(loads, 2, 'kept for the partitions that are loaded next');
    await world.until(() => false, journalReadKeptMs);
    t.same(await read(), []);
    t.equal(loads, 3, 'and not for ever');
  });
});

t.test('a damaged journal refuses a partition, and the next process too', async (t) => {
  const { process, buckets } = processes();
  await put(await process().open(one), [1, 1], [2, 1], [1, 2]);
  buckets.get(one)?.set(keys.entry(3), 'bit rot');
  for (const journals of [process(), process()]) {
    const refused = journals.commitsOf([one], 1, signal);
    await t.rejects(refused, LoadError);
    await t.rejects(refused, /entry 3 is missing or damaged/);
  }
});

t.test('a journal that is damaged on one replica is read again, from another', async (t) => {
  const damages: readonly ((value: Uint8Array) => Uint8Array | null)[] = [
    () => Buffer.from('bit rot'),
    // In its last section.
    (value) => Buffer.concat([value.subarray(0, -1), Buffer.from('!')]),
  ];
  for (const damage of damages) {
    const { process, buckets } = processes();
    await put(await process().open(one), [1, 1], [2, 1], [1, 2]);
    const bucket = buckets.get(one)!;
    const intact = bucket.get(keys.entry(3))!;
    bucket.set(keys.entry(3), damage(intact));
    const journals = process();
    await t.rejects(journals.commitsOf([one], 1, signal), LoadError);
    bucket.set(keys.entry(3), intact);
    t.same(await numbersOf(journals, [one], 1), [1, 2]);
  }
});

t.test('a partition with a gap in a damaged journal finds the rest at the next read', async (t) => {
  const { process, buckets } = processes();
  await put(await process().open(one), [1, 1], [2, 1], [1, 2]);
  const bucket = buckets.get(one)!;
  const intact = bucket.get(keys.entry(1))!;
  bucket.set(keys.entry(1), 'bit rot');
  const journals = process();
  t.same(await numbersOf(journals, [one], 1), [2], 'who loads it sees the gap');
  bucket.set(keys.entry(1), intact);
  t.same(await numbersOf(journals, [one], 1), [1, 2]);
});

t.test('a put without an answer is put again, and counted', async (t) => {
  const bucket = new MemoryBucket();
  const store = createMemoryStore(bucket);
  let unknown = 0;
  let isLosing = true;
  const journals = memoryJournals(undefined, {
    storeOf: () => ({
      ...store,
      put: async (write, revision) => {
        const outcome = await store.put(write, revision);
        if (!isLosing) return outcome;
        isLosing = false;
        return { kind: 'unknown', cause: new Error('no answer') };
      },
    }),
    observer: { ...quietJournals, unknown: () => unknown++ },
  });
  const journal = await journals.open(one);
  await put(journal, [1, 1], [1, 2]);
  t.equal(unknown, 1);
  t.same(await numbersOf(memoryJournals(new Map([[one, bucket]])), [one], 1), [1, 2]);
});

t.test('a journal that is closed is opened no more by that name', async (t) => {
  const { process, used } = processes();
  const journals = process();
  const journal = await journals.open(one);
  journals.close();
  await until('closed', async () => {
    let isTaken = false;
    journal.ask({ partition: 1, hasMore: false, take: () => void (isTaken = true) });
    await new Promise((resolve) => setImmediate(resolve));
    return !isTaken;
  });
  used();
  await t.rejects(journals.open(one), /no more/);
  t.same(used(), []);
});

t.test('a load that began as a former member leaves the journal of this one alone', async (t) => {
  const { process } = processes();
  const journals = process();
  await journals.open(one);
  const journal = await journals.open(other);
  await t.rejects(journals.open(one), /no more/);
  t.equal(await journals.open(other), journal);
  await put(journal, [1, 1]);
});
