/** The commits of a partition, over the store of a journal that answers when the test says so. */
import { setImmediate as nextTick } from 'node:timers/promises';
import t from 'tap';
import { EventOutbox } from '../../../../actors/runtime/events/event-outbox.ts';
import { eventKind } from '../../../../actors/runtime/events/outboxes.ts';
import type { Checkpointer } from '../../../../actors/runtime/journal/checkpoint.ts';
import { bufferOf, decodeEntry, decodeSection } from '../../../../actors/runtime/journal/codec.ts';
import { Commits } from '../../../../actors/runtime/journal/commits.ts';
import { Journal } from '../../../../actors/runtime/journal/journal.ts';
import { Fence } from '../../../../actors/runtime/store/fence.ts';
import type { WriteOutcome } from '../../../../actors/runtime/store/store.ts';
import { CautiousClock } from '../../../../lib/time/cautious-clock.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import { runAtOnce } from '../../../../lib/time/slices.ts';
import type { MemberId } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import { createMemorySink, storeWith } from '../../support/memory-store.ts';

const written: WriteOutcome = { kind: 'written', sequence: 9 };

/** The commits in an entry: the number of each, and the keys that it changes. */
function contentOf(value: Uint8Array | null): string {
  const entry = decodeEntry(value ?? Buffer.from(''));
  if (!entry.ok) return entry.fault;
  const commits = entry.value.sections.map((section) => {
    const commit = decodeSection(section);
    return commit.ok ? `${commit.value.number}:${commit.value.changes.map(([key]) => key).join()}` : commit.fault;
  });
  return commits.join(' ');
}

/** A partition whose last commit is `last`; `did` has what happened, in its order. */
function createCommits(last = 100) {
  const did: string[] = [];
  const answers: ((outcome: WriteOutcome) => void)[] = [];
  const load = { entries: [], pending: [], checkpointed: [], parked: [] };
  const options = {
    sink: createMemorySink([]),
    clock: systemClock,
    last,
    mark: last,
    kind: eventKind,
    onFailure: () => {},
  };
  const checkpointer: Pick<Checkpointer, 'mark' | 'offer'> = {
    mark: last,
    offer: ({ number }) => void did.push(`checkpoint takes ${number}`),
  };
  const fence = new Fence({
    revision: 7,
    move: async () => Promise.resolve({ kind: 'moved', epoch: 8 }),
    onUnknown: () => void did.push('unknown'),
    onRefused: (cause) => void did.push(String(cause)),
    onWentBack: () => void did.push('went back'),
    onLost: () => void did.push('lost'),
  });
  const journal = new Journal({
    member: 'm' as MemberId,
    store: {
      ...storeWith([]),
      put: async ({ value }, revision) => {
        did.push(`put ${contentOf(bufferOf(value ?? ''))} under ${revision}`);
        return new Promise((resolve) => answers.push(resolve));
      },
    },
    fence,
    clock: systemClock,
    observer: { journal: () => {} },
    onFault: (error) => void did.push(String(error)),
  });
  const room = { isThere: true };
  const commits = new Commits({
    partition: 3,
    journal: {
      ask: (source) => journal.ask(source),
      hasRoom: (partition) => room.isThere && journal.hasRoom(partition),
    },
    last,
    checkpointer,
    outbox: runAtOnce(EventOutbox.opening({ ...options, ...load })),
    expiry: new CautiousClock(systemClock, 1),
    onCommitted: ({ number }) => void did.push(`committed ${number}`),
    onRoom: (hasRoom) => void did.push(hasRoom ? 'room' : 'no room'),
    onFault: (error) => void did.push(String(error)),
  });
  /** A turn that changes a key. @returns the number of its commit */
  const turn = (key: string, then: () => void = () => {}): number => {
    const group = commits.open();
    group.take(
      { tenant: '', changes: [[key, Buffer.from('1')]], events: [], lines: [], outcome: undefined, bytes: 100 },
      3,
    );
    group.markDirty(key);
    group.waiters.push((committed) => {
      did.push(`${key} ${committed ? 'answered' : 'to run again'}`);
      then();
    });
    return group.number;
  };
  return {
    commits,
    fence,
    room,
    turn,
    told: () => did.splice(0),
    /** The store answers the oldest put. */
    answer: async (outcome: WriteOutcome) => {
      answers.shift()?.(outcome);
      await nextTick();
    },
  };
}

t.test('a tick is a group, and what comes during its put is the next', async (t) => {
  const { commits, turn, told, answer } = createCommits();
  t.same([turn('a'), turn('b')], [101, 101]);
  t.same(told(), [], 'the tick may bring more');
  await nextTick();
  t.same(told(), ['put 101:a,b under 7']);
  t.same([turn('c'), turn('d')], [102, 102]);
  await nextTick();
  t.same(told(), [], 'one put at a time');
  t.same([commits.committed, commits.last, commits.isIdle], [100, 102, false]);
  await answer(written);
  t.same(told(), ['checkpoint takes 101', 'a answered', 'b answered', 'committed 101', 'put 102:c,d under 7']);
  await answer(written);
  told();
  t.same([commits.committed, commits.isIdle], [102, true]);
  turn('e');
  await nextTick();
  t.same(told(), ['put 103:e under 7'], 'and again after a rest');
});

t.test('a reader waits for the commit that made its key dirty, and for no other', async (t) => {
  const { commits, turn, answer } = createCommits();
  turn('a');
  await nextTick();
  turn('b');
  const seen: string[] = [];
  const read = (key: string) => commits.after(commits.dirtyUntil(key), () => void seen.push(key));
  for (const key of ['a', 'b', 'clean']) read(key);
  t.same(seen, ['clean']);
  await answer(written);
  t.same(seen, ['clean', 'a']);
  t.equal(commits.dirtyUntil('a'), 0);
  commits.after(101, () => void seen.push('late'));
  t.same(seen, ['clean', 'a', 'late'], 'what is committed keeps nobody waiting');
  await answer(written);
  t.same(seen, ['clean', 'a', 'late', 'b']);
});

t.test('a listener that throws keeps nobody else from an answer, nor the next group from its put', async (t) => {
  const { turn, told, answer } = createCommits();
  turn('a', () => {
    throw new Error('a bug');
  });
  turn('b');
  await nextTick();
  turn('c');
  await answer(written);
  t.same(told().slice(2), ['a answered', 'Error: a bug', 'b answered', 'committed 101', 'put 102:c under 7']);
});

t.test('fenced: nothing more is put, and every waiter is handed back in its order', async (t) => {
  const { commits, turn, told, answer } = createCommits();
  turn('a');
  await nextTick();
  turn('b');
  told();
  await answer({ kind: 'fenced' });
  turn('c');
  await nextTick();
  t.same(told(), ['lost']);
  t.equal(commits.committed, 100);
  for (const waiter of commits.close()) waiter(false);
  t.same(
    told(),
    ['a', 'b', 'c'].map((key) => `${key} to run again`),
  );
  t.same(commits.close(), [], 'once');
});

t.test('a put without an answer is put again at the moved epoch, and its waiters know nothing of it', async (t) => {
  const { turn, told, answer } = createCommits();
  turn('a');
  await nextTick();
  turn('b');
  told();
  await answer({ kind: 'unknown', cause: new Error('timeout') });
  t.same(told(), ['unknown', 'put 101:a under 8']);
  await answer(written);
  t.same(told(), ['checkpoint takes 101', 'a answered', 'committed 101', 'put 102:b under 8']);
});

t.test('an answer that comes after the end of the epoch changes nothing', async (t) => {
  for (const outcome of [written, { kind: 'fenced' }] as const) {
    const { commits, fence, turn, told, answer } = createCommits();
    turn('a');
    await nextTick();
    told();
    fence.close();
    t.equal(commits.close().length, 1);
    await answer(outcome);
    t.same([told(), commits.committed], [[], 100], outcome.kind);
  }
});

t.test('a group that is full is closed, also before its put', async (t) => {
  const { commits, turn, told, answer } = createCommits();
  const numbers = Array.from({ length: limits.batchItems + 1 }, (_, index) => turn(`k${index}`));
  t.same([numbers.at(-2), numbers.at(-1)], [101, 102]);
  await nextTick();
  const [put = '', ...more] = told();
  t.same(more, []);
  t.match(put, /^put 101:k0,.* 102:k\d+ under 7$/, 'both fit one entry');
  await answer(written);
  t.equal(commits.committed, 102);
});

t.test('room is what the journal has, and is told when it ends and when it is back', (t) => {
  const { commits, told, room } = createCommits();
  for (const [isThere, said] of [
    [true, []],
    [false, ['no room']],
    [false, []],
    [true, ['room']],
  ] as const) {
    room.isThere = isThere;
    t.same([commits.hasRoom(), told()], [isThere, said]);
  }
  t.end();
});

t.test('there is no room for more waiters than a partition may have', async (t) => {
  const { commits, told, answer } = createCommits();
  const { waiters } = commits.open();
  for (let count = 0; count < limits.turnsQueued - 1; count++) waiters.push(() => {});
  t.ok(commits.hasRoom());
  waiters.push(() => {});
  t.notOk(commits.hasRoom());
  await nextTick();
  await answer(written);
  t.ok(commits.hasRoom());
  t.match(told(), ['no room', 'put 101: under 7', 'checkpoint takes 101', 'committed 101', 'room']);
});

t.test('a group that did not fit the entry stays as it is until it is taken', (t) => {
  const { commits, turn } = createCommits();
  t.equal(turn('a'), 101);
  t.equal(commits.take(1), undefined);
  t.ok(commits.hasMore);
  t.equal(turn('b'), 102, 'what comes later is of the next group');
  t.match(commits.take(Infinity)?.commit, { number: 101, changes: [['a', Uint8Array]] });
  t.match(commits.take(Infinity)?.commit, { number: 102, changes: [['b', Uint8Array]] });
  t.notOk(commits.hasMore);
  t.equal(commits.take(Infinity), undefined);
  t.end();
});

t.test('a partition that is dropped has no more to put', (t) => {
  const { commits, turn } = createCommits();
  turn('a');
  t.equal(commits.take(1), undefined);
  commits.close();
  t.equal(commits.take(Infinity), undefined);
  t.end();
});
