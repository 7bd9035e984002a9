/**
 * Events while the stream EVENTS is away: writes go on, nothing is lost, and what waits is bounded.
 */
import t from 'tap';
import {
  EventOutbox,
  eventsShape,
  type EntryEvents,
  type EventOutboxOptions,
  type ParkedEvents,
} from '../../../../actors/runtime/events/event-outbox.ts';
import { eventKind } from '../../../../actors/runtime/events/outboxes.ts';
import { decodeValue, type Encoded } from '../../../../actors/runtime/journal/codec.ts';
import type { EventSink, StoreWrite } from '../../../../actors/runtime/store/store.ts';
import { sleep } from '../../../../lib/time/backoff.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import { runAtOnce } from '../../../../lib/time/slices.ts';
import { type EventBody } from '../../../../schemas/api/event.ts';
import { compareEvents } from '../../../../schemas/event-id.ts';
import { keys } from '../../../../schemas/records/buckets.ts';
import { limits } from '../../../../schemas/limits.ts';
import type { RecentEvents } from '../../../../schemas/wire/answers.ts';
import { until } from '../../../support/until.ts';
import { containerId, operation, specOf, tenantId } from '../../support.ts';
import { successiveMembers } from '../../support/journals.ts';
import { createPartition, readOf, writeOf } from '../../support/partition.ts';
import { createMemorySink, createMemoryStore, MemoryBucket, type Told } from '../../support/memory-store.ts';
import { recentEventsBytes } from '../../../../actors/runtime/events/recent-events.ts';

const tenant = tenantId('acme');

/** A stream that takes events while the test says so. */
function switchable() {
  const told: Told[] = [];
  const sink = createMemorySink(told);
  const state = { isAway: false };
  const events: EventSink = {
    publish: (messages) => (state.isAway ? Promise.reject(new Error('no stream')) : sink.publish(messages)),
  };
  const ids = (): string[] => told.flatMap(({ payload }) => (JSON.parse(payload) as EventBody[]).map(({ id }) => id));
  return { events, ids, state };
}

t.test(
  'an outage of the stream is no outage of writes, and what was parked is published by the next owner',
  async (t) => {
    const bucket = new MemoryBucket();
    const nextMember = successiveMembers();
    const stream = switchable();
    const parked = (): string[] =>
      bucket.values().flatMap(({ key, value }) => (key.startsWith('events.') && value !== null ? [key] : []));
    const first = createPartition({ store: createMemoryStore(bucket), events: stream.events, ...nextMember() });
    await first.start();
    stream.state.isAway = true;
    const id = containerId();
    const create = { type: 'container.create', tenant, id, spec: specOf('web'), idempotency: null } as const;
    t.equal((await writeOf(first, { ...create, op: operation() })).code, 'created');
    const writes = limits.journalSlots + 200;
    for (let write = 0; write < writes; write++) {
      const type = write % 2 === 0 ? 'container.stop' : 'container.start';
      const { code } = await writeOf(first, { type, tenant, id, op: operation() });
      if (code !== 'ok') return t.equal(code, 'ok', `write ${write}`);
    }
    await first.checkpointed();
    t.ok(parked().length > 1, 'events wait in the bucket');
    t.same(stream.ids(), []);
    const last = async (partition: typeof first): Promise<string | undefined> => {
      const ask = { type: 'event.recent', tenant, container: null, from: { before: null }, limit: 1 } as const;
      const { body } = await readOf(partition, ask);
      return (JSON.parse(body) as { data: RecentEvents }).data.events[0]?.id;
    };
    const newest = await last(first);
    first.drop();

    const next = createPartition({ store: createMemoryStore(bucket), events: stream.events, ...nextMember() });
    t.teardown(() => next.release());
    await next.start();
    t.equal(await last(next), newest, 'the next owner knows them');
    // Nothing is written any more: what waits is published by itself.
    stream.state.isAway = false;
    await until('published', () => new Set(stream.ids()).size >= writes + 1);
    const ids = stream.ids();
    t.same(ids, ids.toSorted(compareEvents), 'in their order');
    await until('nothing waits any more', () => parked().length === 0);
    return undefined;
  },
);

t.test('waiting events are bounded, and room comes with the stream', async (t) => {
  const stream = switchable();
  stream.state.isAway = true;
  const empty = { last: 0, mark: 0, pending: [], checkpointed: [], parked: [] };
  const options: EventOutboxOptions = {
    sink: stream.events,
    clock: systemClock,
    kind: eventKind,
    onFailure: () => {},
    ...empty,
  };
  const outbox = runAtOnce(EventOutbox.opening(options));
  t.teardown(() => outbox.stop());
  const entry = (number: number): EntryEvents => ({
    number,
    events: Array.from({ length: 100 }, (_, index) => ({
      subject: 'event.acme.a',
      event: { id: `0-${number}-${index}`, message: null } as EventBody,
    })),
  });
  const kept = new Map<string, Encoded>();
  const park = (number: number): boolean => {
    const writes = outbox.park(number);
    for (const { key, value } of writes ?? []) {
      if (value === null) kept.delete(key);
      else kept.set(key, value);
    }
    return writes !== undefined;
  };
  let number = 0;
  do outbox.offer(entry(++number));
  while (park(number) && number < 1000);
  t.ok(outbox.isFull);
  t.ok(number > 100 && number < 1000, `after ${number} entries`);
  t.ok(Math.max(...[...kept.values()].map(({ length }) => length)) < 1024 * 1024, 'a key fits a message');
  t.equal(outbox.parkedEvents, (number - 1) * 100);
  t.notOk(outbox.hasFreed);
  stream.state.isAway = false;
  let isFreed = false;
  outbox.onFreed(() => (isFreed = true));
  while (outbox.publishedTo < number) await outbox.publishTo(number, 100);
  t.ok(isFreed && outbox.hasFreed);
  // A checkpoint takes a bounded number of keys.
  for (let left = Infinity; kept.size > 0 && kept.size < left;) {
    left = kept.size;
    t.ok(park(number));
  }
  t.notOk(outbox.isFull);
  t.equal(kept.size, 0);
  t.equal(outbox.parkedEvents, 0);
  t.equal(new Set(stream.ids()).size, number * 100);
});

t.test('an event that arrives while a publication ends is published, whatever the moment', async (t) => {
  const entry = (number: number): EntryEvents => ({
    number,
    events: [{ subject: 'event.acme.a', event: { id: `0-${number}-0`, message: null } as EventBody }],
  });
  const empty = { last: 0, mark: 0, pending: [], checkpointed: [], parked: [] };
  /** From the acknowledgement of the first on, in turns of the microtask queue. */
  for (let turns = 0; turns < 20; turns++) {
    let acknowledge = (): void => {};
    let publications = 0;
    const sink: EventSink = {
      publish: () => (++publications === 1 ? new Promise((resolve) => (acknowledge = resolve)) : Promise.resolve()),
    };
    const outbox = runAtOnce(
      EventOutbox.opening({ sink, clock: systemClock, kind: eventKind, onFailure: () => {}, ...empty }),
    );
    // It has looked, and nothing was there.
    await sleep(0);
    outbox.offer(entry(1));
    outbox.offer(entry(2));
    void outbox.publishTo(1, 60_000);
    acknowledge();
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    await outbox.publishTo(2, 5_000);
    t.equal(outbox.publishedTo, 2, `wanted ${turns} turns after it`);
    await outbox.stop();
  }
});

t.test('a page of recent events is bounded, and the pages are all', (t) => {
  const events = Array.from({ length: 1200 }, (_, index) => ({
    subject: `event.acme.${index % 2 === 0 ? 'a' : 'b'}`,
    event: { id: `0-1-${index}`, container_id: index % 2 === 0 ? 'a' : 'b', message: 'x'.repeat(1000) } as EventBody,
  }));
  const pending = [{ number: 1, events }];
  const empty = { last: 1, mark: 0, pending, checkpointed: [], parked: [] };
  const { events: sink } = switchable();
  const outbox = runAtOnce(
    EventOutbox.opening({ sink, clock: systemClock, kind: eventKind, onFailure: () => {}, ...empty }),
  );
  const scope = { reader: tenant, matches: () => true, limit: 5000 };
  const ids: string[] = [];
  for (let more = true; more;) {
    const page = outbox.recent({ ...scope, from: { after: ids.at(-1) ?? '' } });
    t.ok(JSON.stringify(page.found).length <= recentEventsBytes + 1000);
    ids.push(...page.found.map(({ event }) => event.id));
    ({ more } = page);
  }
  t.same(
    ids,
    events.map(({ event }) => event.id),
  );
  const ofOne = outbox.recent({
    ...scope,
    matches: (event) => event.container_id === events[1]?.event.container_id,
    from: { before: '0-1-6' },
    limit: 2,
  });
  t.same(
    ofOne.found.map(({ event }) => event.id),
    ['0-1-3', '0-1-5'],
  );
  t.match(ofOne, { more: true, last: 1 });
  t.same(outbox.recent({ ...scope, reader: 'rival', from: { before: null } }).found, []);
  t.end();
});

t.test('events published a moment ago are parked for the next owner, who publishes them again', async (t) => {
  let nowMs = 0;
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };
  const entry = (number: number, ...owners: readonly string[]): EntryEvents => ({
    number,
    events: owners.map((owner, index) => ({
      subject: `event.${owner}.a`,
      event: { id: `0-${number}-${index}`, container_id: 'a', message: null } as EventBody,
    })),
  });
  const opened = (
    stream: ReturnType<typeof switchable>,
    parked: readonly ParkedEvents[],
    last: number,
  ): EventOutbox => {
    const load = { last, mark: last, pending: [], checkpointed: [], parked };
    return runAtOnce(
      EventOutbox.opening({ sink: stream.events, clock, kind: eventKind, onFailure: () => {}, ...load }),
    );
  };
  const stream = switchable();
  const outbox = opened(stream, [], 0);
  const [old, ...entries] = [
    entry(1, 'acme'),
    entry(2, 'acme', 'rival', 'acme'),
    entry(3, 'rival'),
    entry(11, 'acme'),
  ] as const;
  outbox.offer(old);
  await outbox.publishTo(1, 1000);
  nowMs += limits.eventsSettledMs + 1;
  const [second, third, waiting] = entries;
  outbox.offer(second);
  outbox.offer(third);
  await outbox.publishTo(3, 1000);
  stream.state.isAway = true;
  outbox.offer(waiting);
  const [write, ...more] = outbox.parkPublished();
  t.same(more, []);
  t.equal(write?.key, keys.events(2));
  const parkedOf = (value: Encoded | null | undefined): readonly EntryEvents[] => {
    const decoded = decodeValue(value ?? '', eventsShape);
    return decoded.ok ? decoded.value : [];
  };
  const idsOf = (parked: readonly EntryEvents[]): (string | string[])[][] =>
    parked.map(({ number, events }) => [`${number}`, events.map(({ event }) => event.id).sort()]);
  t.same(
    idsOf(parkedOf(write?.value)),
    idsOf([entries[0], entries[1]]),
    'by commit; neither those from long ago, nor those that are not published',
  );
  await outbox.stop();

  const again = switchable();
  const next = opened(again, [{ key: write?.key ?? '', entries: parkedOf(write?.value) }], 11);
  await next.publishTo(3, 1000);
  t.same([...again.ids()].sort(), ['0-2-0', '0-2-1', '0-2-2', '0-3-0']);
  t.ok(next.hasFreed);
  t.same(next.park(11), [{ key: keys.events(2), value: null }], 'its key goes when they are published');
  await next.stop();
  t.same(opened(switchable(), [], 0).parkPublished(), [], 'nothing was published');
});

t.test('a parked event is not parked again in place of one that waits beside it', async (t) => {
  const stream = switchable();
  stream.state.isAway = true;
  /** So large that each is published by itself. */
  const message = 'x'.repeat(limits.journalEntryBytes / 2);
  const onlyFifth: EventSink = {
    publish: async (messages) => {
      if (messages.some(({ payload }) => payload.includes('0-6-0'))) throw new Error('no stream');
      await stream.events.publish(messages);
    },
  };
  const load = { last: 0, mark: 0, pending: [], checkpointed: [], parked: [] };
  const options = { sink: onlyFifth, clock: systemClock, kind: eventKind, onFailure: () => {}, ...load };
  const outbox = runAtOnce(EventOutbox.opening(options));
  const entry = (number: number): EntryEvents => ({
    number,
    events: [{ subject: 'event.acme.a', event: { id: `0-${number}-0`, message } as EventBody }],
  });
  const bucket = new Map<string, Encoded>();
  const write = (writes: readonly StoreWrite[] = []): void => {
    for (const { key, value } of writes) {
      if (value === null) bucket.delete(key);
      else bucket.set(key, value);
    }
  };
  outbox.offer(entry(5));
  outbox.offer(entry(6));
  write(outbox.park(6));
  t.same([...bucket.keys()], [keys.events(5)]);
  // The first of the two is published before the hand-over, so the key of both stays.
  stream.state.isAway = false;
  await outbox.publishTo(5, 5000);
  await outbox.stop();
  write(outbox.parkPublished());
  const parked = Array.from(bucket, ([key, value]): ParkedEvents => {
    const decoded = decodeValue(value, eventsShape);
    return { key, entries: decoded.ok ? decoded.value : [] };
  });
  t.same(
    [...new Set(parked.flatMap(({ entries }) => entries.map(({ number }) => number)))].sort(),
    [5, 6],
    'nothing that was parked is lost',
  );
  const again = switchable();
  const next = runAtOnce(EventOutbox.opening({ ...options, sink: again.events, last: 6, mark: 6, parked }));
  await next.publishTo(6, 5000);
  t.same(again.ids(), ['0-5-0', '0-6-0'], 'each once');
  write(next.park(6));
  t.same([...bucket.keys()], [], 'its key goes');
  await next.stop();
});
