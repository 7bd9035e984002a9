/** Conditions and pauses of checkpoints, in virtual time. */
import t from 'tap';
import { startCheckpointer, checkpointLookMs } from '../../../../actors/runtime/journal/checkpoint.ts';
import type { Commit } from '../../../../actors/runtime/journal/codec.ts';
import { RecordsDigest } from '../../../../actors/runtime/journal/digest.ts';
import { EventOutbox } from '../../../../actors/runtime/events/event-outbox.ts';
import { eventKind } from '../../../../actors/runtime/events/outboxes.ts';
import { Outboxes, lineKind } from '../../../../actors/runtime/events/outboxes.ts';
import { Fence } from '../../../../actors/runtime/store/fence.ts';
import { noReading } from '../../../../lib/time/cautious-clock.ts';
import { CautiousClock } from '../../../../lib/time/cautious-clock.ts';
import { sleep } from '../../../../lib/time/backoff.ts';
import { runAtOnce } from '../../../../lib/time/slices.ts';
import type { EventBody } from '../../../../schemas/api/event.ts';
import { limits } from '../../../../schemas/limits.ts';
import type { Process } from '../../../sim/world/time.ts';
import { inWorld } from '../../support/in-world.ts';
import { createMemoryStore, MemoryBucket } from '../../support/memory-store.ts';

const commit = (number: number): Commit => ({
  number,
  changes: [[`container.${number}`, Buffer.from('1 00000000 {}')]],
  operations: [],
  events: [{ subject: 'event.acme.a', event: { id: `0-${number}-0`, message: null } as EventBody }],
  clock: noReading,
});

/** A partition with this many commits above its mark, and a stream that acknowledges when asked. */
function startBehind({ clock }: Process, commits: number) {
  const pending = Array.from({ length: commits }, (_, index) => commit(index + 1));
  const stream = { isHeld: true, answers: [] as (() => void)[] };
  const outbox = runAtOnce(
    EventOutbox.opening({
      sink: {
        publish: async () => {
          if (stream.isHeld) await new Promise<void>((resolve) => stream.answers.push(resolve));
        },
      },
      clock,
      last: commits,
      mark: 0,
      pending: pending.slice(0, 1),
      checkpointed: [],
      parked: [],
      kind: eventKind,
      onFailure: () => {},
    }),
  );
  const bucket = new MemoryBucket();
  bucket.takeEpoch('epoch', 0);
  const memory = createMemoryStore(bucket);
  const batches: string[] = [];
  const marks: number[] = [];
  const journal = { isFilling: false };
  const start = () =>
    startCheckpointer({
      store: {
        ...memory,
        putBatch: async (writes, epoch) => {
          batches.push(writes.map(({ key }) => key.replace(/\..*/, '')).join(' '));
          return memory.putBatch(writes, epoch);
        },
      },
      outbox,
      fence: new Fence({
        revision: bucket.epoch,
        move: async () => Promise.reject(new Error('a calm store')),
        onUnknown: () => {},
        onRefused: () => {},
        onWentBack: () => {},
        onLost: () => {},
      }),
      clock,
      expiry: new CautiousClock(clock, limits.clockAgreedMs, undefined),
      mark: 0,
      pending,
      digest: new RecordsDigest({
        isKey: (key) => key.startsWith('container.'),
        isNewKey: () => false,
        isNewestKey: () => false,
      }),
      journal: { isFilling: () => journal.isFilling, inTurn: (write) => write() },
      markAt: (number) => ({ number, journals: [] }),
      onMark: (mark) => void marks.push(mark),
    });
  const offerRest = (): void => {
    for (const { number, events } of pending.slice(1)) outbox.offer({ number, events });
  };
  const acknowledge = async (): Promise<void> => {
    await sleep(1);
    stream.answers.shift()?.();
    await sleep(1);
  };
  const acknowledgeAll = async (): Promise<void> => {
    stream.isHeld = false;
    await acknowledge();
  };
  return { outbox, batches, marks, journal, start, offerRest, acknowledge, acknowledgeAll };
}

t.test('a checkpoint takes the commits whose events are published, and waits for no others', async (t) => {
  await inWorld(t, 60_000, async (process) => {
    const { outbox, batches, marks, start, offerRest, acknowledge, acknowledgeAll } = startBehind(process, 5);
    void outbox.publishTo(1, 1000);
    await acknowledge();
    offerRest();
    const checkpointer = start();
    await sleep(1);
    t.same(marks, [1], 'at once');
    // The next batch waits for the events of all that are left.
    await acknowledgeAll();
    await sleep(limits.checkpointPaceMs * 2);
    t.same(marks, [1, 5]);
    t.notOk(
      batches.some((keys) => keys.includes('events')),
      'nothing is parked',
    );
    await checkpointer.stop();
    await outbox.stop();
  });
});

t.test('while the stream is away, a checkpoint takes all, with their events', async (t) => {
  await inWorld(t, 60_000, async (process) => {
    const { outbox, batches, marks, start, offerRest, acknowledge, acknowledgeAll } = startBehind(process, 5);
    void outbox.publishTo(1, 1000);
    await acknowledge();
    offerRest();
    await outbox.publishTo(5, 10);
    t.ok(outbox.isFailing);
    const checkpointer = start();
    await sleep(1);
    t.same(marks, [5]);
    t.match(batches, [/^events( container){5} /]);
    await checkpointer.stop();
    await acknowledgeAll();
    await outbox.stop();
  });
});

t.test('a partition rests between two checkpoints until the journal fills', async (t) => {
  await inWorld(t, 60_000, async (process) => {
    const { outbox, marks, journal, start, offerRest, acknowledgeAll } = startBehind(process, 3);
    void outbox.publishTo(1, 1000);
    await acknowledgeAll();
    offerRest();
    await outbox.publishTo(3, 1000);
    const checkpointer = start();
    await sleep(1);
    t.same(marks, [3]);
    const offer = (number: number): void => {
      outbox.offer({ number, events: [] });
      checkpointer.offer({ ...commit(number), events: [] });
    };
    offer(4);
    await sleep(limits.checkpointPaceMs / 2 - 1);
    t.same(marks, [3], 'it rests');
    journal.isFilling = true;
    await sleep(checkpointLookMs + 1);
    t.same(marks, [3, 4]);
    journal.isFilling = false;
    offer(5);
    offer(6);
    await sleep(limits.checkpointPaceMs / 2 - 1);
    t.same(marks, [3, 4, 5], 'it did not rest after the fourth, and rests now');
    await sleep(limits.checkpointPaceMs / 2 + 2);
    t.same(marks, [3, 4, 5, 6], 'for its pace at most');
    offer(7);
    await checkpointer.drain();
    t.equal(marks.at(-1), 7, 'who drains it does not wait');
    await checkpointer.stop();
    await outbox.stop();
  });
});

t.test('a checkpoint after a long outage of both streams is no longer than a server takes', async (t) => {
  await inWorld(t, 120_000, async ({ clock }) => {
    const perStream = 260;
    const parkedIn = (kind: 'events' | 'audit') =>
      Array.from({ length: perStream }, (_, index) => ({
        key: `${kind}.${index + 1}`,
        entries: [
          { number: index + 1, events: [{ subject: 'x.a', event: { id: `0-${index + 1}-0`, message: null } }] },
        ],
      }));
    const bucket = new MemoryBucket();
    bucket.takeEpoch('epoch', 0);
    for (const { key } of [...parkedIn('events'), ...parkedIn('audit')]) bucket.set(key, 'parked');
    const changed = Array.from({ length: 3 }, (_, index) => wideCommit(perStream + 1 + index));
    const last = perStream + changed.length;
    const at = { sink: { publish: async () => Promise.resolve() }, clock, last, mark: perStream, onFailure: () => {} };
    const empty = { pending: [], checkpointed: [] };
    const events = runAtOnce(
      EventOutbox.opening({ ...at, ...empty, kind: eventKind, parked: parkedIn('events') as never }),
    );
    const audit = runAtOnce(
      EventOutbox.opening({ ...at, ...empty, kind: lineKind, parked: parkedIn('audit') as never }),
    );
    const outbox = new Outboxes(events, audit);
    await outbox.publishTo(last, 10_000);
    const memory = createMemoryStore(bucket);
    const faults: unknown[] = [];
    const checkpointer = startCheckpointer({
      store: memory,
      outbox,
      fence: new Fence({
        revision: bucket.epoch,
        move: async () => Promise.resolve({ kind: 'refused' }),
        onUnknown: (cause) => faults.push(cause),
        onRefused: (cause) => faults.push(cause),
        onWentBack: () => faults.push('went back'),
        onLost: () => faults.push('lost'),
      }),
      clock,
      expiry: new CautiousClock(clock, limits.clockAgreedMs, undefined),
      mark: perStream,
      pending: changed,
      digest: new RecordsDigest({
        isKey: (key) => key.startsWith('container.'),
        isNewKey: () => false,
        isNewestKey: () => false,
      }),
      journal: { isFilling: () => false, inTurn: (write) => write() },
      markAt: (number) => ({ number, journals: [] }),
      onMark: () => {},
    });
    await sleep(limits.checkpointPaceMs * 10);
    t.same(faults, []);
    t.equal(checkpointer.mark, last);
    const parked = bucket.values().filter(({ key, value }) => /^(events|audit)\./.test(key) && value !== null);
    t.same(parked, [], 'all that was parked is deleted in the end');
    await checkpointer.stop();
    await outbox.stop();
  });
});

/** Changes as many records as a batch may. */
const wideCommit = (number: number): Commit => ({
  ...commit(number),
  changes: Array.from({ length: limits.checkpointBatchMessages }, (_, index) => [
    `container.${number}-${index}`,
    Buffer.from('1 00000000 {}'),
  ]),
  events: [],
});
