/**
 * Sealing the journal of a dead member, and what is read of one that is whole, damaged or short.
 */
import t from 'tap';
import {
  type Commit,
  encodeEntry,
  encodeSection,
  encodeValue,
  type Low,
} from '../../../../actors/runtime/journal/codec.ts';
import { LoadError } from '../../../../actors/runtime/journal/load-error.ts';
import { readSealed, sealJournal } from '../../../../actors/runtime/journal/read-journal.ts';
import type { Store } from '../../../../actors/runtime/store/store.ts';
import { noReading } from '../../../../lib/time/cautious-clock.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import { createSlices, runAtOnce } from '../../../../lib/time/slices.ts';
import { keys } from '../../../../schemas/records/buckets.ts';
import type { MemberId } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import { createMemoryStore, MemoryBucket } from '../../support/memory-store.ts';

const member = 'dead' as MemberId;
const R = limits.journalSlots;
const slices = createSlices(systemClock);
const { signal } = new AbortController();

// Seals

/** @returns the revision of the seal, or why there is none */
const sealing = async (store: Store, failures: unknown[] = []) => {
  const sealed = await sealJournal({
    store,
    member,
    newToken: () => 'token',
    nowMs: () => 7,
    signal: AbortSignal.timeout(10_000),
    onFailure: (error) => failures.push(error),
  });
  return sealed.kind === 'sealed' ? sealed.revision : sealed.kind;
};

/** The revision of a seal. */
const sealOf = async (store: Store): Promise<number> => Number(await sealing(store));

function openedBucket(): MemoryBucket {
  const bucket = new MemoryBucket();
  bucket.takeEpoch(encodeValue({ token: 'own', owner: member, takenAtMs: 1 }), 0);
  return bucket;
}

t.test('a seal moves the fence once, and later takers find it', async (t) => {
  const bucket = openedBucket();
  const store = createMemoryStore(bucket);
  const opened = bucket.epoch;
  const seal = await sealOf(store);
  t.equal(seal, bucket.epoch);
  t.ok(bucket.epoch > opened);
  t.match(await store.put({ key: keys.entry(1), value: encodeValue(1) }, opened), { kind: 'fenced' });
  t.equal(await sealing(store), seal);
  t.equal(bucket.epoch, seal, 'it was not moved again');
});

t.test('two that seal at once have one seal', async (t) => {
  const bucket = openedBucket();
  const store = createMemoryStore(bucket);
  const [one, other] = await Promise.all([sealing(store), sealing(store)]);
  t.equal(one, other);
  t.equal(one, bucket.epoch);
});

t.test('a journal that is not there has no seal', async (t) => {
  const bucket = new MemoryBucket();
  t.equal(await sealing(createMemoryStore(bucket)), 'gone');
  // As `nats kv del` leaves it.
  bucket.set(keys.epoch, '');
  t.equal(await sealing(createMemoryStore(bucket)), 'given up');
});

t.test('a fence that cannot be read is replaced all the same', async (t) => {
  const bucket = new MemoryBucket();
  bucket.takeEpoch('rot', 0);
  t.equal(await sealing(createMemoryStore(bucket)), bucket.epoch);
});

t.test('a store without an answer is asked again, until the signal aborts', async (t) => {
  const bucket = openedBucket();
  const store = createMemoryStore(bucket);
  const failures: unknown[] = [];
  let attempts = 0;
  const flaky: Store = {
    ...store,
    readEpoch: async () => (++attempts === 1 ? Promise.reject(new Error('no answer')) : store.readEpoch()),
    takeEpoch: async (value, expected) => {
      const taken = await store.takeEpoch(value, expected);
      // The answer to the first is lost: it is found at the next look.
      if (attempts === 2) throw new Error('no answer');
      return taken;
    },
  };
  t.equal(await sealing(flaky, failures), bucket.epoch);
  t.equal(failures.length, 2);
  const aborted = AbortSignal.abort(new Error('given up'));
  const options = { store, member, newToken: () => '', nowMs: () => 0, onFailure: () => {} };
  await t.rejects(sealJournal({ ...options, signal: aborted }), { message: 'given up' });
});

// Reads

const commitOf = (number: number): Commit => ({
  number,
  changes: [['key', Buffer.from(`${number}`)]],
  operations: [],
  events: [],
  clock: noReading,
});

/** The commit of each partition: `{ 1: 7 }` is commit 7 of partition 1. */
type Content = Readonly<Record<number, number>>;

/** A journal in a bucket, as its member left it. */
class Left {
  readonly bucket = openedBucket();
  readonly #sequences = new Map<number, number>();
  last = 0;
  /** Messages of journals in the same bucket, between any two entries. */
  strangers = 0;

  /** `from`: the oldest entry that is needed. */
  put(content: Content, from = 1): this {
    const number = ++this.last;
    for (let more = 0; more < this.strangers; more++) this.bucket.set('other', 'x');
    const sections = Object.entries(content).map(([partition, commit]) => ({
      partition: Number(partition),
      bytes: encodeSection(commitOf(commit)),
    }));
    const low: Low = { number: from, sequence: this.#sequences.get(from) ?? 0 };
    this.bucket.set(keys.entry(number % R), encodeEntry(number, low, sections));
    this.#sequences.set(number, this.bucket.values().at(-1)?.revision ?? 0);
    return this;
  }

  /** Damages the section of a partition in an entry. */
  damageSection(number: number, partition: number): void {
    const key = keys.entry(number % R);
    const bytes = Buffer.from(this.bucket.get(key) ?? '');
    const head = bytes.indexOf('\n') + 1;
    const { sections } = JSON.parse(bytes.toString('utf8', '3 01234567 '.length, head)) as {
      sections: { partition: number; bytes: number }[];
    };
    const at = sections.findIndex((section) => section.partition === partition);
    const before = sections.slice(0, at).reduce((sum, section) => sum + section.bytes, 0);
    bytes[head + before] = 0;
    this.bucket.set(key, bytes);
  }

  sequenceOf(number: number): number {
    return this.#sequences.get(number) ?? 0;
  }

  damage(number: number): void {
    this.bucket.set(keys.entry(number % R), 'bit rot');
  }
  lose(number: number): void {
    this.bucket.lose(keys.entry(number % R));
  }

  /** The commits of a partition as the next owner reads them, or why it is refused. */
  async read(...partitions: readonly number[]): Promise<(readonly number[] | string)[]> {
    const store = createMemoryStore(this.bucket);
    const sealed = await readSealed({ store, member }, await sealOf(store), slices, signal);
    return partitions.map((partition) => {
      try {
        return runAtOnce(sealed.commitsOf(partition)).map(({ number }) => number);
      } catch (error) {
        if (error instanceof LoadError) return error.message.replace(/^the journal of member dead: /, '');
        throw error;
      }
    });
  }
}

/** Commits of partitions 1 and 2 in turn, and a last of partition 1; all of it needed. */
const filled = (entries: number): Left => {
  const left = new Left();
  for (let number = 1; number <= entries; number++) left.put({ [number % 2 === 0 ? 2 : 1]: Math.ceil(number / 2) });
  return left;
};

t.test('a partition gets its own commits, in the order of the entries', async (t) => {
  const left = new Left().put({ 1: 4, 2: 9 }).put({ 2: 10 }).put({ 1: 5, 3: 1 });
  t.same(await left.read(1, 2, 3, 4), [[4, 5], [9, 10], [1], []]);
  t.same(await new Left().read(1), [[]], 'of a member that put nothing');
});

t.test('entries that no partition needs any more are not read', async (t) => {
  const left = new Left().put({ 1: 1 }).put({ 1: 2 }).put({ 1: 3 }, 2);
  t.same(await left.read(1), [[2, 3]]);
  left.damage(1);
  t.same(await left.read(1, 2), [[2, 3], []], 'and may be damaged');
});

t.test('a commit that was put twice is there twice', async (t) => {
  t.same(await new Left().put({ 1: 1 }).put({ 2: 1 }).put({ 1: 1 }).read(1), [[1, 1]]);
});

t.test('a damaged section refuses its partition alone', async (t) => {
  const left = new Left().put({ 1: 1, 2: 1 }).put({ 1: 2, 2: 2 });
  left.damageSection(1, 2);
  t.same(await left.read(1, 2, 3), [[1, 2], 'its section in entry 1 is damaged (checksum)', []]);
});

t.test('an entry that is missing or damaged refuses the partitions without a later one', async (t) => {
  for (const harm of ['damage', 'lose'] as const) {
    const refused = 'entry 2 is missing or damaged';
    const left = new Left().put({ 1: 1 }).put({ 2: 1 }).put({ 1: 2 });
    left[harm](2);
    t.same(await left.read(1, 2, 3), [[1, 2], refused, refused], `${harm} one between`);
    const first = new Left().put({ 1: 1 }).put({ 2: 1 });
    first[harm](1);
    t.same(await first.read(1, 2), ['entry 1 is missing or damaged', [1]], `${harm} the first`);
    const two = filled(6);
    two[harm](3);
    two[harm](5);
    t.same(await two.read(1, 2), ['entry 5 is missing or damaged', [1, 2, 3]], `${harm} two`);
  }
});

t.test('the slot of the next entry may hold an acknowledged one', async (t) => {
  const last = filled(5);
  last.damage(5);
  const refused = 'entry 5 is missing or damaged';
  t.same(await last.read(1, 2), [refused, refused], 'the last is damaged, in the first round');

  const only = new Left().put({ 1: 1 });
  only.damage(1);
  t.same(await only.read(1), ['entry 1 is missing or damaged'], 'the only one is damaged');
});

/** A journal in its second round; only the last entries are needed. */
function secondRound(): Left {
  const left = new Left();
  for (let number = 1; number <= R + 9; number++) left.put({ 1: number }, Math.max(1, number - 4));
  return left;
}

t.test('from the second round on, the slot of the next entry holds that of the round before', async (t) => {
  t.same(await secondRound().read(1), [[5, 6, 7, 8, 9].map((number) => R + number)]);
  const rows: [string, (left: Left) => void, number][] = [
    ['the last is lost', (left) => left.lose(R + 9), R + 9],
    ['the last is damaged', (left) => left.damage(R + 9), R + 9],
    [
      'the last two are lost',
      (left) => {
        left.lose(R + 8);
        left.lose(R + 9);
      },
      R + 8,
    ],
    ['the one that is replaced next is damaged', (left) => left.damage(10), R + 10],
  ];
  for (const [name, harm, missing] of rows) {
    const left = secondRound();
    harm(left);
    t.same(await left.read(1, 2), Array(2).fill(`entry ${missing} is missing or damaged`), name);
  }
});

t.test('what is needed is read once, from the end', async (t) => {
  const reads: [from: number, until: number | undefined][] = [];
  let seal = 0;
  const readsOf = async (left: Left, partition: number) => {
    reads.length = 0;
    const memory = createMemoryStore(left.bucket);
    const store: Store = {
      ...memory,
      load: async (epoch, from = 1, until = undefined) => {
        reads.push([from, until]);
        return memory.load(epoch, from, until);
      },
    };
    seal = await sealOf(store);
    const sealed = await readSealed({ store, member }, seal, slices, signal);
    return runAtOnce(sealed.commitsOf(partition)).map(({ number }) => number);
  };
  const numbers = (from: number, to: number): number[] =>
    Array.from({ length: to - from + 1 }, (_, index) => from + index);
  const { journalReadWindow: window, journalReadGrowth: growth } = limits;

  const short = new Left();
  for (let number = 1; number <= 2 * window; number++) short.put({ 1: number }, Math.max(1, number - 5));
  t.same(await readsOf(short, 1), numbers(2 * window - 5, 2 * window));
  t.same(reads, [[seal - window, undefined]], 'the newest messages are enough');

  const among = new Left();
  among.strangers = 200;
  for (let number = 1; number <= 40; number++) among.put({ 1: number }, Math.max(1, number - 10));
  t.same(await readsOf(among, 1), numbers(30, 40));
  const low = among.sequenceOf(30);
  t.same(
    reads,
    [
      [seal - window, undefined],
      [low, seal - window],
    ],
    'the last entry says where the oldest is',
  );

  const long = new Left();
  long.strangers = 200;
  for (let number = 1; number <= 40; number++) long.put({ 1: number });
  t.same(await readsOf(long, 1), numbers(1, 40));
  t.equal(reads.length, 2, 'all of it');

  const away = new Left().put({ 1: 1 }).put({ 1: 2 });
  for (let more = 0; more < 2 * window; more++) away.bucket.set('other', 'x');
  t.same(await readsOf(away, 1), [1, 2]);
  const start = Math.max(1, seal - window * growth);
  t.same(reads.slice(1), [[start, seal - window]], 'no entry is among the newest messages');
});

t.test('a read of a replica that lags is refused', async (t) => {
  const left = filled(3);
  const store = createMemoryStore(left.bucket);
  const stale = { ...store, load: async () => Promise.reject(new Error('a stale replica')) };
  await t.rejects(readSealed({ store: stale, member }, await sealOf(store), slices, signal), /stale/);
});
