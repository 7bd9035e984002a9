/** The commits of an epoch, over a store that answers when the test says so. */
import { setImmediate as nextTick } from 'node:timers/promises';
import t from 'tap';
import { EventOutbox } from '../../../../actors/runtime/events/event-outbox.ts';
import type { Checkpointer } from '../../../../actors/runtime/journal/checkpoint.ts';
import { decodeEntry } from '../../../../actors/runtime/journal/codec.ts';
import { Commits } from '../../../../actors/runtime/journal/commits.ts';
import { Fence } from '../../../../actors/runtime/store/fence.ts';
import type { WriteOutcome } from '../../../../actors/runtime/store/store.ts';
import { CautiousClock } from '../../../../lib/time/cautious-clock.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import { runAtOnce } from '../../../../lib/time/slices.ts';
import { keys } from '../../../../schemas/records/buckets.ts';
import { limits } from '../../../../schemas/limits.ts';
import { createMemorySink, storeWith } from '../../support/memory-store.ts';

const written: WriteOutcome = { kind: 'written' };

/** A partition whose journal ends with entry `last`; `did` has what happened, in its order. */
function createCommits(last = 100) {
  const did: string[] = [];
  const answers: ((outcome: WriteOutcome) => void)[] = [];
  const load = { entries: [], pending: [], checkpointed: [], parked: [] };
  const options = { sink: createMemorySink([]), clock: systemClock, last, mark: last, onFailure: () => {} };
  let mark = last;
  const checkpointer: Checkpointer = {
    get mark() {
      return mark;
    },
    offer: ({ number }) => void did.push(`checkpoint takes ${number}`),
    keepClock: () => {},
    stop: async () => {},
    drained: async () => {},
  };
  const fence = new Fence({
    revision: 7,
    move: async () => Promise.resolve({ kind: 'moved', epoch: 8 }),
    onUnknown: () => void did.push('unknown'),
    onLost: () => void did.push('lost'),
  });
  const commits = new Commits({
    store: {
      ...storeWith([]),
      put: async ({ key, value }, epoch) => {
        const decoded = decodeEntry(value ?? '');
        const changed = decoded.ok ? decoded.value.changes.map(([name]) => name).join() : 'damaged';
        did.push(`put ${changed} at ${key} under ${epoch}`);
        return new Promise((resolve) => answers.push(resolve));
      },
    },
    fence,
    last,
    checkpointer,
    outbox: runAtOnce(EventOutbox.opening({ ...options, ...load })),
    clock: systemClock,
    expiry: new CautiousClock(systemClock, 1),
    onCommitted: ({ number }) => void did.push(`committed ${number}`),
    onRoom: (hasRoom) => void did.push(hasRoom ? 'room' : 'no room'),
    onFault: (error) => void did.push(String(error)),
  });
  /** A turn that changes a key. @returns the number of its commit */
  const turn = (key: string, then: () => void = () => {}): number => {
    const group = commits.open();
    group.change(key, '1');
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
    turn,
    told: () => did.splice(0),
    moveMark: (to: number) => void (mark = to),
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
  t.same(told(), [`put a,b at ${keys.journal(101)} under 7`]);
  t.same([turn('c'), turn('d')], [102, 102]);
  await nextTick();
  t.same(told(), [], 'one put at a time');
  t.same([commits.committed, commits.last, commits.isIdle], [100, 102, false]);
  await answer(written);
  t.same(told(), [
    'checkpoint takes 101',
    'committed 101',
    'a answered',
    'b answered',
    `put c,d at ${keys.journal(102)} under 7`,
  ]);
  await answer(written);
  told();
  t.same([commits.committed, commits.isIdle], [102, true]);
  turn('e');
  await nextTick();
  t.same(told(), [`put e at ${keys.journal(103)} under 7`], 'and again after a rest');
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
  t.same(told().slice(3), ['a answered', 'Error: a bug', 'b answered', `put c at ${keys.journal(102)} under 7`]);
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
  t.same(told(), ['unknown', `put a at ${keys.journal(101)} under 8`]);
  await answer(written);
  t.same(told(), ['checkpoint takes 101', 'committed 101', 'a answered', `put b at ${keys.journal(102)} under 8`]);
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
  await answer(written);
  await answer(written);
  t.equal(told().filter((what) => what.startsWith('put')).length, 2);
  t.equal(commits.committed, 102);
});

t.test('room ends two slots before the ring, and is told when it ends and when it is back', (t) => {
  const { commits, told, moveMark } = createCommits(1000);
  for (const [mark, hasRoom, said] of [
    [1000, true, []],
    [1000 - limits.journalSlots + 3, true, []],
    [1000 - limits.journalSlots + 2, false, ['no room']],
    [1000 - limits.journalSlots + 1, false, []],
    [1000 - limits.journalSlots + 3, true, ['room']],
  ] as const) {
    moveMark(mark);
    t.same([commits.hasRoom(), told()], [hasRoom, said], `${commits.entriesAboveMark} entries`);
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
  t.match(told(), ['no room', 'put  at journal.101 under 7', 'checkpoint takes 101', 'committed 101', 'room']);
});
