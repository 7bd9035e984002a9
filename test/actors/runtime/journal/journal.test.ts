/** The journal of a member, over a store that answers when the test says so. */
import { setImmediate as nextTick } from 'node:timers/promises';
import t from 'tap';
import {
  bufferOf,
  type Commit,
  decodeEntry,
  decodeSection,
  encodeSection,
  type Low,
  type StoredEntry,
} from '../../../../actors/runtime/journal/codec.ts';
import {
  Journal,
  throttleMs,
  type CommitSource,
  journalCarryShare,
  journalThrottleMs,
  checkpointTurnMs,
} from '../../../../actors/runtime/journal/journal.ts';
import { readSealed } from '../../../../actors/runtime/journal/read-journal.ts';
import { Fence } from '../../../../actors/runtime/store/fence.ts';
import type { WriteOutcome } from '../../../../actors/runtime/store/store.ts';
import { noReading } from '../../../../lib/time/cautious-clock.ts';
import { sleep } from '../../../../lib/time/backoff.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import { createSlices, runAtOnce } from '../../../../lib/time/slices.ts';
import { keys } from '../../../../schemas/records/buckets.ts';
import type { MemberId } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import { until } from '../../../support/until.ts';
import { inWorld } from '../../support/in-world.ts';
import { createFractions } from '../../support/random.ts';
import { createMemoryStore, MemoryBucket } from '../../support/memory-store.ts';
import { World } from '../../../sim/world/time.ts';

const member = 'm' as MemberId;

/** A partition that has these commits to put. */
class Source implements CommitSource {
  readonly partition: number;
  readonly written: number[] = [];
  readonly #journal: Journal;
  readonly #bytes: number;
  #waiting: Commit[] = [];
  #last = 0;
  onWritten = (_: number): void => {};

  constructor(journal: Journal, partition: number, bytes = 10) {
    this.#journal = journal;
    this.partition = partition;
    this.#bytes = bytes;
  }

  get hasMore(): boolean {
    return this.#waiting.length > 0;
  }
  get last(): number {
    return this.#last;
  }

  commit(count = 1): void {
    for (let more = 0; more < count; more++) {
      const value = Buffer.alloc(this.#bytes, this.#last);
      this.#waiting.push({
        number: ++this.#last,
        changes: [['key', value]],
        operations: [],
        events: [],
        clock: noReading,
      });
    }
    this.#journal.ask(this);
  }

  take(maxBytes: number) {
    const [commit] = this.#waiting;
    if (commit === undefined) return undefined;
    const section = encodeSection(commit);
    if (section.length > maxBytes) return undefined;
    this.#waiting.shift();
    const onWritten = (): void => {
      this.written.push(commit.number);
      this.onWritten(commit.number);
    };
    return { commit, section, onWritten };
  }
}

function decoded(value: Uint8Array | null): StoredEntry {
  const entry = decodeEntry(value ?? Buffer.from(''));
  if (!entry.ok) throw new Error(entry.fault);
  return entry.value;
}

/** `<partition>:<commit>` of each section. */
const contentOf = (value: Uint8Array | null): string =>
  decoded(value)
    .sections.map((section) => {
      const commit = decodeSection(section);
      return `${section.partition}:${commit.ok ? commit.value.number : commit.fault}`;
    })
    .join(' ');

/** A journal over a bucket; while it is held, puts wait for `answer`. */
function createJournal({ isHeld = false, clock = systemClock } = {}) {
  const bucket = new MemoryBucket();
  bucket.takeEpoch('fence', 0);
  const memory = createMemoryStore(bucket);
  const puts: string[] = [];
  const lows: Low[] = [];
  const answers: ((outcome?: WriteOutcome) => void)[] = [];
  const told: string[] = [];
  const faults: string[] = [];
  const state = { isHeld };
  const fence = new Fence({
    revision: bucket.epoch,
    move: async (from) => {
      bucket.takeEpoch('moved', from);
      return Promise.resolve({ kind: 'moved', epoch: bucket.epoch });
    },
    onUnknown: () => void told.push('unknown'),
    onRefused: (cause) => void told.push(String(cause)),
    onWentBack: ({ seen, got }) => {
      told.push(`went back: ${got} after ${seen}`);
      journal.hold();
    },
    onLost: () => void told.push('lost'),
  });
  const journal = new Journal({
    member,
    store: {
      ...memory,
      put: async (write, revision) => {
        puts.push(`${contentOf(bufferOf(write.value ?? ''))} at ${write.key}`);
        lows.push(decoded(bufferOf(write.value ?? '')).low);
        if (!state.isHeld) return memory.put(write, revision);
        const outcome = await new Promise<WriteOutcome | undefined>((resolve) => answers.push(resolve));
        return outcome ?? memory.put(write, revision);
      },
    },
    fence,
    clock,
    observer: { journal: (entries) => void told.push(`${entries} entries`) },
    onFault: (error) => void faults.push(String(error)),
  });
  return {
    bucket,
    journal,
    fence,
    faults,
    state,
    lows,
    puts: () => puts.splice(0),
    told: () => told.splice(0),
    answer: async (outcome?: WriteOutcome) => {
      answers.shift()?.(outcome);
      for (let turn = 0; turn < 4; turn++) await nextTick();
    },
    /** Numbers of the commits that the next owner of a partition reads. */
    readBack: async (partition: number): Promise<number[]> => {
      const seal = bucket.takeEpoch('sealed', bucket.epoch) ?? 0;
      const slices = createSlices(systemClock);
      const sealed = await readSealed({ store: memory, member }, seal, slices, new AbortController().signal);
      const numbers = runAtOnce(sealed.commitsOf(partition)).map(({ number }) => number);
      return [...new Set(numbers)].sort((one, other) => one - other);
    },
  };
}

t.test('commits of several partitions in one tick are one put, and what comes during it is the next', async (t) => {
  const { journal, puts, answer } = createJournal({ isHeld: true });
  const [a, b, c] = [new Source(journal, 7), new Source(journal, 2), new Source(journal, 5)];
  a.commit();
  b.commit();
  t.same(puts(), [], 'the tick may bring more');
  await nextTick();
  t.same(puts(), [`7:1 2:1 at ${keys.entry(1)}`], 'in the order in which they asked');
  c.commit();
  b.commit(2);
  a.commit();
  await nextTick();
  t.same([puts(), a.written], [[], []], 'one put at a time');
  await answer();
  t.same([a.written, b.written, c.written], [[1], [1], []]);
  t.same(puts(), [`5:1 2:2 7:2 2:3 at ${keys.entry(2)}`], 'a commit of each in turn');
  await answer();
  t.same([a.written, b.written, c.written], [[1, 2], [1, 2, 3], [1]]);
  await nextTick();
  t.same(puts(), []);
  a.commit();
  await nextTick();
  t.same(puts(), [`7:3 at ${keys.entry(3)}`], 'and again after a rest');
  await answer();
});

t.test('a commit that does not fit waits for the next entry, and is the first there', async (t) => {
  const { journal, puts, answer } = createJournal({ isHeld: true });
  const large = new Source(journal, 1, limits.journalEntryBytes * 0.6);
  const other = new Source(journal, 2, limits.journalEntryBytes * 0.6);
  const small = new Source(journal, 3);
  large.commit();
  other.commit();
  small.commit();
  await nextTick();
  t.same(puts(), [`1:1 3:1 at ${keys.entry(1)}`], 'a small one goes before it');
  small.commit();
  large.commit();
  await answer();
  t.same(puts(), [`2:1 3:2 at ${keys.entry(2)}`]);
  await answer();
  t.same(puts(), [`1:2 at ${keys.entry(3)}`]);
  await answer();
  const huge = new Source(journal, 4, limits.journalEntryBytes * 1.01);
  huge.commit();
  await nextTick();
  t.same(puts(), [`4:1 at ${keys.entry(4)}`], 'one that fits no entry has one of its own');
  await answer();
});

t.test('a slot is used again when every partition has checkpointed what it holds', async (t) => {
  const { bucket, journal, lows, told } = createJournal();
  const [a, b] = [new Source(journal, 1), new Source(journal, 2)];
  const settled = async (): Promise<void> => {
    while (a.written.length < a.last || b.written.length < b.last) await nextTick();
  };
  a.commit();
  b.commit();
  await settled();
  for (let more = 0; more < 3; more++) {
    b.commit();
    await settled();
  }
  t.equal(journal.entries, 4);
  journal.checkpointed(2, 4);
  t.equal(journal.entries, 4, 'the first entry has a commit of another partition');
  t.same(
    told(),
    [1, 2, 3, 4, 4].map((entries) => `${entries} entries`),
    'also while none is freed',
  );
  b.commit();
  await settled();
  t.equal(lows.at(-1)?.number, 1);
  journal.checkpointed(1, 1);
  t.equal(journal.entries, 1);
  t.same(told(), ['5 entries', '1 entries']);
  b.commit();
  await settled();
  const sequence = bucket.values().find(({ key }) => key === keys.entry(5))?.revision;
  t.same(lows.at(-1), { number: 5, sequence }, 'a reader begins at the oldest that is needed');
  journal.checkpointed(2, 5);
  t.equal(journal.entries, 1);
  journal.checkpointed(2, 6);
  t.equal(journal.entries, 0);
  b.commit();
  await settled();
  t.match(lows.at(-1), { number: 7, sequence: Number }, 'the entry itself');
  t.ok((lows.at(-1)?.sequence ?? Infinity) <= (bucket.values().at(-1)?.revision ?? 0));
});

t.test('a partition that does not checkpoint keeps nobody from the ring, and loses nothing', async (t) => {
  const world = new World();
  const process = world.process('actors');
  await world.run(createFractions(1), async () => {
    const { journal, puts, readBack } = createJournal();
    const stuck = new Source(journal, 1);
    const other = new Source(journal, 2);
    other.onWritten = (number) => journal.checkpointed(2, number);
    let most = 0;
    const rounds = 2 * limits.journalSlots + 100;
    void world.spawn(process, async () => {
      for (let round = 1; round <= rounds; round++) {
        if (round <= 40) stuck.commit();
        other.commit();
        while (other.written.length < round) await sleep(1);
        most = Math.max(most, journal.entries);
      }
    });
    t.ok(await world.until(() => other.written.length === rounds, 60 * 60_000));
    t.ok(most < limits.journalSlots - 2, `at most ${most} entries`);
    t.ok(journal.hasRoom(1) && journal.hasRoom(2));
    const carrying = puts().filter((put) => (put.match(/ 1:/g) ?? []).length > 5);
    t.ok(carrying.length > 1, `carried ${carrying.length} times`);
    t.ok(
      carrying.every((put) => !put.includes('2:')),
      'in entries of their own',
    );
    const found: Record<number, readonly number[]> = {};
    void world.spawn(process, async () => {
      found[1] = await readBack(1);
      found[2] = await readBack(2);
    });
    t.ok(await world.until(() => found[2] !== undefined, 60_000));
    t.same(
      found[1],
      Array.from({ length: 40 }, (_, index) => index + 1),
    );
    t.equal(found[2]?.at(-1), rounds);
    journal.checkpointed(1, 40);
    t.ok(journal.entries <= 1, 'the carried commits go with their checkpoint');
  });
});

/** A ring with commits of partition 1 at its start, up to the share from which they are carried. */
async function stuckRing() {
  const parts = createJournal();
  const { journal } = parts;
  const [stuck, other] = [new Source(journal, 1), new Source(journal, 2)];
  other.onWritten = (number) => journal.checkpointed(2, number);
  const put = async (...sources: readonly Source[]): Promise<void> => {
    for (const source of sources) source.commit();
    while (sources.some(({ written, last }) => written.length < last)) await sleep(1);
  };
  for (let commits = 0; commits < 4; commits++) await put(stuck, other);
  while (journal.entries < limits.journalSlots * journalCarryShare) await put(other);
  return { ...parts, stuck, other, put };
}

t.test('commits that are checkpointed while they are carried hold no slot', async (t) => {
  await inWorld(t, 60 * 60_000, async () => {
    const { journal, state, other, puts, answer, put } = await stuckRing();
    puts();
    state.isHeld = true;
    other.commit();
    while (puts().length === 0) await sleep(1);
    journal.checkpointed(1, 3);
    state.isHeld = false;
    void answer();
    await put(other);
    t.same(
      (await journal.commitsOf(1)).map(({ number }) => number),
      [4],
    );
    t.ok(journal.entries > 0, 'what is not checkpointed holds its slot');
    journal.checkpointed(1, 4);
    await put(other);
    t.equal(journal.entries, 0, 'all is checkpointed');
  });
});

t.test('a carried commit is no sign that the later ones of its partition are there', async (t) => {
  await inWorld(t, 60 * 60_000, async () => {
    const { bucket, stuck, other, puts, put, readBack } = await stuckRing();
    const carried = stuck.last;
    for (let commits = 0; commits < limits.journalSlots / 2; commits++) await put(other);
    puts();
    await put(stuck);
    const [, at = ''] = /1:\d+ at (.*)$/.exec(puts().at(-1) ?? '') ?? [];
    // The ring fills again, so that those before this one are carried.
    let isCarried = false;
    while (!isCarried) {
      await put(other);
      isCarried = puts().some((line) => line.startsWith(`1:1 `));
    }
    t.same(
      await readBack(1),
      Array.from({ length: carried + 1 }, (_, index) => index + 1),
    );
    bucket.set(at, 'bit rot');
    await t.rejects(readBack(1), { name: 'LoadError' });
  });
});

t.test('without checkpoints the ring does not fill, and the next owner finds everything', async (t) => {
  const world = new World();
  const process = world.process('actors');
  await world.run(createFractions(1), async () => {
    const { journal, readBack } = createJournal();
    const sources = [1, 2, 3].map((partition) => new Source(journal, partition));
    const commits = 2 * limits.journalSlots;
    let most = 0;
    let found: number[][] | undefined;
    void world.spawn(process, async () => {
      for (let count = 1; count <= commits; count++) {
        // Entries with one commit, and with several.
        for (const source of sources.slice(count % sources.length)) source.commit();
        while (sources.some(({ written, last }) => written.length < last)) await sleep(1);
        most = Math.max(most, journal.entries);
      }
      const read: number[][] = [];
      for (const { partition } of sources) read.push(await readBack(partition));
      found = read;
    });
    await world.until(() => found !== undefined, 60 * 60_000);
    t.ok(most < limits.journalSlots - 2, `at most ${most} entries`);
    const all = sources.map(({ last }) => Array.from({ length: last }, (_, index) => index + 1));
    t.same(found, all);
    t.ok(all.every(({ length }) => length > commits / 4));
  });
});

t.test('room is bounded in bytes of a partition, and in bytes of all', async (t) => {
  const { journal } = createJournal();
  const bytes = limits.journalEntryBytes;
  const partitions = Math.ceil(limits.journalBytes / limits.uncheckpointedBytes);
  for (let partition = 0; partition < partitions; partition++) {
    t.ok(journal.hasRoom(partition), `partition ${partition} has room`);
    const source = new Source(journal, partition, bytes);
    while (journal.hasRoom(partition)) {
      source.commit();
      while (source.written.length < source.last) await nextTick();
    }
    const isLast = partition === partitions - 1;
    if (!isLast) t.equal(source.last, Math.ceil(limits.uncheckpointedBytes / bytes), 'of its own bytes');
    t.equal(journal.hasRoom(99), !isLast, 'another has room while there is some for all');
  }
  journal.checkpointed(0, 1);
  t.ok(journal.hasRoom(99), 'room for all');
  t.ok(journal.hasRoom(0), 'and for the one that checkpointed');
  t.notOk(journal.hasRoom(1));
});

t.test('there is no room while a put has no outcome for longer than an election takes', async (t) => {
  let nowMs = 0;
  const clock = { ...systemClock, monotonicMs: () => nowMs };
  const { journal, answer } = createJournal({ isHeld: true, clock });
  const source = new Source(journal, 1);
  source.commit();
  await nextTick();
  nowMs += limits.journalStalledMs - 1;
  t.ok(journal.hasRoom(1));
  nowMs += 1;
  t.notOk(journal.hasRoom(1));
  t.notOk(journal.hasRoom(2), 'nor for another partition');
  await answer({ kind: 'unknown', cause: new Error('no answer') });
  t.notOk(journal.hasRoom(1), 'it is put again');
  await answer();
  t.same(source.written, [1]);
  t.ok(journal.hasRoom(1));
  nowMs += limits.journalStalledMs;
  t.ok(journal.hasRoom(1), 'nothing is under way');
});

t.test('a later load of the partition finds every put, also one without an answer', async (t) => {
  const { journal, answer, told } = createJournal({ isHeld: true });
  const source = new Source(journal, 1);
  const numbersOf = async (partition: number): Promise<number[]> =>
    (await journal.commitsOf(partition)).map(({ number }) => number);
  t.same(await numbersOf(1), []);
  source.commit();
  await nextTick();
  await answer();
  t.same(told(), ['1 entries']);
  source.commit();
  await nextTick();
  let known: number[] | undefined;
  const asking = numbersOf(1).then((numbers) => (known = numbers));
  await answer({ kind: 'unknown', cause: new Error('no answer') });
  t.same([told(), known], [['unknown'], undefined], 'it waits for the outcome');
  await answer();
  await asking;
  t.same(known, [1, 2]);
  t.same(await numbersOf(2), []);
  journal.checkpointed(1, 1);
  t.same(await numbersOf(1), [2]);
});

t.test('nothing of a partition that was given away is needed, nor put', async (t) => {
  const { journal, puts, answer } = createJournal({ isHeld: true });
  const [gone, stays] = [new Source(journal, 1), new Source(journal, 2)];
  gone.commit();
  await nextTick();
  await answer();
  t.equal(journal.entries, 1);
  gone.commit();
  stays.commit();
  journal.forget(1);
  t.equal(journal.entries, 0);
  t.same(await journal.commitsOf(1), []);
  await nextTick();
  t.same(puts().at(-1), `2:1 at ${keys.entry(2)}`);
  await answer();
});

t.test('a closed journal puts nothing more', async (t) => {
  const { journal, puts, told, answer } = createJournal({ isHeld: true });
  const source = new Source(journal, 1);
  source.commit();
  await nextTick();
  source.commit();
  journal.close();
  await answer({ kind: 'unknown', cause: new Error('no answer') });
  source.commit();
  await nextTick();
  await nextTick();
  t.same(puts(), [`1:1 at ${keys.entry(1)}`]);
  t.same([source.written, told()], [[], ['unknown']], 'and says nothing of it');
});

t.test('a journal that was sealed puts nothing more, and says so once', async (t) => {
  const { bucket, journal, puts, told } = createJournal();
  const source = new Source(journal, 1);
  bucket.takeEpoch('sealed', bucket.epoch);
  source.commit();
  await until('lost', () => told().includes('lost'));
  source.commit();
  for (let turn = 0; turn < 4; turn++) await nextTick();
  t.same([puts().length, source.written, told()], [1, [], []]);
});

t.test('a listener that throws keeps nobody else from its answer, nor the next entry', async (t) => {
  const { journal, faults } = createJournal();
  const [bad, good] = [new Source(journal, 1), new Source(journal, 2)];
  bad.onWritten = () => {
    throw new Error('a bug');
  };
  bad.commit(2);
  good.commit(2);
  await until('written', () => good.written.length === 2);
  t.same(faults, ['Error: a bug', 'Error: a bug']);
  good.commit();
  await until('written', () => good.written.length === 3);
});

t.test('checkpoints are due from a third of the ring on, and of the bytes of a partition', async (t) => {
  const { journal } = createJournal();
  const source = new Source(journal, 7);
  const put = async (): Promise<void> => {
    source.commit();
    while (source.written.length < source.last) await nextTick();
  };
  t.notOk(journal.isFilling(7));
  while (source.last < Math.floor(limits.journalSlots * limits.journalFillingShare)) await put();
  t.notOk(journal.isFilling(7));
  await put();
  t.ok(journal.isFilling(7));
  const newer = new Source(journal, 9);
  newer.commit();
  while (newer.written.length < newer.last) await nextTick();
  t.ok(journal.isFilling(7));
  t.notOk(journal.isFilling(9), 'its commits are not among the oldest');
  t.notOk(journal.isFilling(99), 'it has none');
  journal.checkpointed(7, source.last);
  t.notOk(journal.isFilling(7));
  const large = new Source(journal, 8, limits.checkpointDueBytes / 5);
  large.commit(6);
  await until('it is put', () => large.written.length === 6);
  t.ok(journal.isFilling(8));
  t.notOk(journal.isFilling(7), 'its own bytes');
});

t.test('batches of checkpoints go one after another, unless one takes long', async (t) => {
  await inWorld(t, 60_000, async () => {
    const { journal } = createJournal();
    const begun: string[] = [];
    const answers: (() => void)[] = [];
    const batch = async (name: string): Promise<void> =>
      journal.inTurn(async () => {
        begun.push(name);
        await new Promise<void>((resolve) => answers.push(resolve));
      });
    void batch('a');
    void batch('b');
    void batch('c');
    await sleep(1);
    t.same(begun, ['a']);
    answers.shift()?.();
    await sleep(1);
    t.same(begun, ['a', 'b']);
    await sleep(checkpointTurnMs);
    t.same(begun, ['a', 'b', 'c'], 'the second has no answer');
    for (const answer of answers) answer();
    await t.rejects(
      journal.inTurn(async () => Promise.reject(new Error('refused'))),
      /refused/,
    );
    await journal.inTurn(async () => Promise.resolve(void begun.push('d')));
    t.equal(begun.at(-1), 'd', 'one that fails keeps no other');
  });
});

t.test('a ring that fills slows entries down before it refuses writes', (t) => {
  const slots = limits.journalSlots;
  t.equal(throttleMs(0), 0);
  t.equal(throttleMs(slots / 2), 0);
  t.equal(throttleMs(slots * 0.75), journalThrottleMs / 4);
  t.equal(throttleMs(slots), journalThrottleMs);
  t.equal(throttleMs(slots * 2), journalThrottleMs);
  t.end();
});

t.test('a put at a sequence of the past is not acknowledged, and nothing more is put', async (t) => {
  const { bucket, journal, told, puts, readBack } = createJournal();
  const [a, b] = [new Source(journal, 1), new Source(journal, 2)];
  const put = async (source: Source): Promise<void> => {
    source.commit();
    for (let turn = 0; turn < 6; turn++) await nextTick();
  };
  await put(a);
  const copy = bucket.copy();
  await put(a);
  await put(b);
  t.same([a.written, b.written], [[1, 2], [1]]);
  t.ok(journal.hasRoom(1) && !journal.isHeld);
  bucket.goBack(copy);
  told();
  puts();
  await put(a);
  t.same(a.written, [1, 2], 'it is stored, behind a gap');
  t.same(told(), [`went back: ${copy.sequence + 1} after ${copy.sequence + 2}`]);
  t.ok(journal.isHeld);
  t.notOk(journal.hasRoom(1) || journal.hasRoom(2));
  await put(b);
  t.same([puts().length, b.written], [1, [1]]);
  t.same(await readBack(1), [1, 3], 'a load refuses the gap');
});
