/**
 * Events between their commit and the stream EVENTS, and in the same way lines of the audit and the
 * stream AUDIT: each stream has an outbox of its own (outboxes.ts). They are published in the order
 * of the journal's entries, so that a tenant's events lie in the stream as they happened, and again
 * until the stream acknowledges them.
 *
 * While the stream is away, the checkpoint parks the events in the bucket, in the batch that moves
 * its mark: an event stays as durable as the state it reports, and the journal continues. Parked
 * events are bounded in bytes.
 *
 * The outbox also answers for what a reader of the stream may not see yet: events that are
 * committed and not published, and those that were published a moment ago, since any replica
 * answers a read and one may lag (ADR 12).
 */
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { backoffMs, sleep, withAbort } from '../../../lib/time/backoff.ts';
import { retry } from '../../../lib/time/retry.ts';
import { fill } from '../../../lib/fill.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import type { EventBody } from '../../../schemas/api/event.ts';
import { limits } from '../../../schemas/limits.ts';
import { encodeValue, OutgoingEvent, OutgoingLine, type Identified, type Outgoing } from '../journal/codec.ts';
import { AuthorsHeader } from './authors-header.ts';
import { RecentEvents, bytesOfAll, settlingOf, type Asked, type OutboxKind } from './recent-events.ts';
import type { EventSink, StoreWrite, StoredEvent } from '../store/store.ts';

/** The events of one journal entry. */
export interface EntryEvents<Item extends Identified = EventBody> {
  readonly number: number;
  readonly events: readonly Outgoing<Item>[];
}

/** The value of a key of parked events, and of parked lines. */
export const eventsShape = Compile(
  Type.Array(Type.Object({ number: Type.Integer(), events: Type.Array(OutgoingEvent) })),
);
export const linesShape = Compile(
  Type.Array(Type.Object({ number: Type.Integer(), events: Type.Array(OutgoingLine) })),
);

/** A key of the bucket, and the events that lie there; oldest first. */
export interface ParkedEvents<Item extends Identified = EventBody> {
  readonly key: string;
  readonly entries: readonly EntryEvents<Item>[];
}

export interface EventOutboxOptions<Item extends Identified = EventBody> {
  readonly kind: OutboxKind<Item>;
  readonly sink: EventSink;
  readonly clock: Clock;
  /** Number of the last entry that the load found. */
  readonly last: number;
  readonly mark: number;
  /** Entries above the mark, oldest first. */
  readonly pending: readonly EntryEvents<Item>[];
  /**
   * Entries at or below it that the journal still has; those before the first that is parked were
   * published.
   */
  readonly checkpointed: readonly EntryEvents<Item>[];
  readonly parked: readonly ParkedEvents<Item>[];
  readonly onFailure: (error: unknown) => void;
}

/**
 * Messages in the order of the entries. Events of a container share a message until another
 * container of its tenant has one, or they have too many authors: a reader of the tenant then meets
 * all events in their order.
 */
export function eventMessages<Item extends Identified>(
  { readerOf }: Pick<OutboxKind<Item>, 'readerOf'>,
  entries: readonly EntryEvents<Item>[],
): StoredEvent[] {
  const messages: { readonly subject: string; readonly events: Item[]; readonly authors: AuthorsHeader }[] = [];
  const newest = new Map<string, (typeof messages)[number]>();
  for (const { subject, event, by } of entries.flatMap(({ events }) => events)) {
    const reader = readerOf(subject);
    const open = newest.get(reader);
    if (open?.subject === subject && open.authors.add(by)) {
      open.events.push(event);
      continue;
    }
    const message = { subject, events: [event], authors: new AuthorsHeader() };
    message.authors.add(by);
    newest.set(reader, message);
    messages.push(message);
  }
  return messages.map(({ subject, events, authors: { value: by } }) => ({
    subject,
    payload: JSON.stringify(events),
    ...(by === undefined ? {} : { by }),
  }));
}

/** The entries that one message holds if all their events are of one container; at least one. */
const takeEntries = <Item extends Identified>(
  kind: OutboxKind<Item>,
  entries: readonly EntryEvents<Item>[],
  upTo: number,
): readonly EntryEvents<Item>[] =>
  fill(through(entries, upTo), { bytes: limits.journalEntryBytes }, (entry) => ({
    value: entry,
    bytes: bytesOfAll(kind, entry.events),
  })).values;

function* through<Entry extends { readonly number: number }>(
  entries: readonly Entry[],
  upTo: number,
): Generator<Entry, void, void> {
  for (const entry of entries) {
    if (entry.number > upTo) return;
    yield entry;
  }
}

/** The id of an event has the number of its commit: `<partition>-<commit>-<index>`. */
const commitOf = ({ event }: Outgoing<Identified>): number => Number(event.id.split('-')[1]);
const numberOf = ({ number }: { readonly number: number }): number => number;
const byNumber = (one: { readonly number: number }, other: { readonly number: number }): number =>
  one.number - other.number;

export class EventOutbox<Item extends Identified = EventBody> {
  readonly #options: EventOutboxOptions<Item>;
  /** Entries that are not published, oldest first; entries without events are left out. */
  #unpublished: EntryEvents<Item>[];
  readonly #recent: RecentEvents<Item>;
  #last: number;
  #parked: ParkedEvents<Item>[];
  /** Events of entries up to this one are published or parked. */
  #parkedTo: number;
  #isFull = false;
  #whenFreed: () => void = () => {};
  /** Entries up to this one are to be published. */
  #wanted = 0;
  /** `true` if the last attempt failed or takes too long. */
  #isFailing = false;
  #running: Promise<void> | undefined;
  #onProgress: (() => void)[] = [];
  readonly #stopped = new AbortController();

  /**
   * Makes an outbox from the result of a load. Showing the events of a full journal is long work:
   * an entry is a step (lib/time/slices.ts).
   */
  static *opening<Item extends Identified>(
    options: EventOutboxOptions<Item>,
  ): Generator<void, EventOutbox<Item>, void> {
    // From the first that is parked on, all are published again: so they keep their order.
    const parked = options.parked.flatMap(({ entries }) => entries);
    const first = Math.min(...parked.map(({ number }) => number), Infinity);
    const published = options.checkpointed.filter(({ number }) => number < first);
    const later = options.checkpointed.filter(({ number }) => number >= first);
    const unpublished = new Map([...parked, ...later, ...options.pending].map((entry) => [entry.number, entry]));
    const outbox = new EventOutbox(options, [...unpublished.values()]);
    for (const { events } of settlingOf(options.kind, published)) {
      outbox.#recent.show(events);
      outbox.#recent.published(events);
      yield;
    }
    for (const { events } of outbox.#unpublished) {
      outbox.#recent.show(events);
      yield;
    }
    // Parked entries wait for no checkpoint.
    outbox.#wanted = options.mark;
    outbox.#wake();
    return outbox;
  }

  private constructor(options: EventOutboxOptions<Item>, unpublished: readonly EntryEvents<Item>[]) {
    this.#options = options;
    this.#recent = new RecentEvents(options.kind, options.clock);
    this.#last = options.last;
    const firstOf = ({ entries }: ParkedEvents<Item>): number => entries[0]?.number ?? 0;
    this.#parked = options.parked.toSorted((one, other) => firstOf(one) - firstOf(other));
    this.#parkedTo = options.mark;
    this.#unpublished = unpublished
      .filter(({ events }) => events.length > 0)
      .map(({ number, events }) => ({ number, events }))
      .toSorted((one, other) => one.number - other.number);
  }

  /** All events of entries up to this one are in the stream. */
  get publishedTo(): number {
    const [oldest] = this.#unpublished;
    return oldest === undefined ? this.#last : oldest.number - 1;
  }
  get last(): number {
    return this.#last;
  }
  get isFailing(): boolean {
    return this.#isFailing;
  }

  /** `true` if so many events are parked that the mark does not move. */
  get isFull(): boolean {
    return this.#isFull;
  }
  /** `true` unless the stream is away and this reader's share of waiting events is full. */
  hasShare(reader: string): boolean {
    return !this.#isFailing || this.#recent.hasShare(reader, limits.eventsParkedBytes);
  }
  get parkedEvents(): number {
    return this.#parked.flatMap(({ entries }) => entries).reduce((sum, { events }) => sum + events.length, 0);
  }
  /** `true` if there are parked keys whose events are all published. */
  get hasFreed(): boolean {
    return this.#parked.some((one) => this.#isPublished(one));
  }
  /** Sets the function to call when there are. */
  onFreed(call: () => void): void {
    this.#whenFreed = call;
  }

  /** `true` if the events that `park` would write fit the limit of parked events. */
  fits(entry: number): boolean {
    const adding = this.#adding(entry);
    const kept = this.#parked.filter((one) => !this.#isPublished(one));
    const bytes = kept.reduce((sum, one) => sum + this.#bytesOf(one.entries), 0) + this.#bytesOf(adding);
    this.#isFull = adding.length > 0 && bytes > limits.eventsParkedBytes;
    return !this.#isFull;
  }

  /**
   * The writes that go with a mark at `entry`: the events up to there that are not published, and
   * the deletion of keys whose events are, of the `most` oldest. `undefined` if too many are
   * parked. If the batch is not written, the epoch ends, and with it this outbox.
   */
  park(entry: number, most: number = limits.eventsFreedPerBatch): readonly StoreWrite[] | undefined {
    if (!this.fits(entry)) return undefined;
    const adding = this.#adding(entry);
    const published = this.#parked.filter((one) => this.#isPublished(one));
    const freed = published.slice(0, most);
    const later = published.slice(most);
    const kept = this.#parked.filter((one) => !this.#isPublished(one));
    this.#parked = [...later, ...kept];
    this.#parkedTo = Math.max(this.#parkedTo, entry);
    const deletions = freed.map(({ key }): StoreWrite => ({ key, value: null }));
    const [first] = adding;
    if (first === undefined) return deletions;
    const newest = kept.at(-1);
    const isOpen = newest !== undefined && this.#bytesOf([...newest.entries, ...adding]) <= limits.eventsParkedKeyBytes;
    const grown = isOpen
      ? { key: newest.key, entries: [...newest.entries, ...adding] }
      : { key: this.#options.kind.keyOf(first.number), entries: adding };
    this.#parked = [...later, ...(isOpen ? kept.slice(0, -1) : kept), grown];
    return [...deletions, { key: grown.key, value: encodeValue(grown.entries) }];
  }

  #adding(entry: number): readonly EntryEvents<Item>[] {
    return this.#unpublished.filter(({ number }) => number > this.#parkedTo && number <= entry);
  }

  #bytesOf(entries: readonly EntryEvents<Item>[]): number {
    return entries.reduce((sum, { events }) => sum + bytesOfAll(this.#options.kind, events), 0);
  }

  /**
   * Parks what was published a moment ago, too, unless it still is: a replica of the stream may
   * lag, and the next owner shows it meanwhile. It publishes these events again, under the same
   * ids.
   */
  parkPublished(): StoreWrite[] {
    return this.#parking(this.#settling(new Set(this.#parked.flatMap(({ entries }) => entries.map(numberOf)))));
  }

  /**
   * Parks all that is not published, and what was published a moment ago: the bucket and the stream
   * may have lost it. Other keys of parked events are not needed then.
   */
  parkAll(): StoreWrite[] {
    const published = this.#settling(new Set(this.#unpublished.map(numberOf)));
    return this.#parking([...published, ...this.#unpublished].toSorted(byNumber));
  }

  #parking(entries: readonly EntryEvents<Item>[]): StoreWrite[] {
    const writes: StoreWrite[] = [];
    for (let rest = entries; rest.length > 0;) {
      const { values } = fill(rest, { bytes: limits.eventsParkedKeyBytes }, (entry) => ({
        value: entry,
        bytes: bytesOfAll(this.#options.kind, entry.events),
      }));
      rest = rest.slice(values.length);
      writes.push({ key: this.#options.kind.keyOf(values[0]?.number ?? 0), value: encodeValue(values) });
    }
    return writes;
  }

  /**
   * The events that were published a moment ago.
   * @param but entries to leave out
   */
  #settling(but: ReadonlySet<number>): readonly EntryEvents<Item>[] {
    const byCommit = new Map<number, Outgoing<Item>[]>();
    for (const outgoing of this.#recent.settling()) {
      const number = commitOf(outgoing);
      if (but.has(number)) continue;
      const events = byCommit.get(number);
      if (events === undefined) byCommit.set(number, [outgoing]);
      else events.push(outgoing);
    }
    return Array.from(byCommit, ([number, events]) => ({ number, events })).toSorted(byNumber);
  }

  #isPublished({ entries }: ParkedEvents<Item>): boolean {
    return (entries.at(-1)?.number ?? 0) <= this.publishedTo;
  }

  /** Takes the events of a committed entry. */
  offer({ number, events }: EntryEvents<Item>): void {
    this.#last = number;
    if (events.length === 0) return;
    this.#unpublished.push({ number, events });
    this.#recent.show(events);
    this.#wanted = number;
    this.#wake();
  }

  /**
   * Publishes the entries up to this one; resolves when that is done, has failed for now, or takes
   * longer than `ms`.
   */
  async publishTo(entry: number, ms: number): Promise<void> {
    this.#wanted = Math.max(this.#wanted, entry);
    this.#wake();
    if (this.publishedTo >= entry || this.#stopped.signal.aborted) return;
    // A caller waits only once for a stream that is away, and not again until it is back.
    if (this.#isFailing) return;
    let isOver = false;
    await withAbort([this.#stopped.signal], (waiting) => {
      const look = (): void => {
        isOver = this.publishedTo >= entry || this.#isFailing;
        if (isOver) waiting.abort();
        else this.#onProgress.push(look);
      };
      look();
      return sleep(ms, waiting.signal);
    });
    if (!isOver) this.#isFailing = true;
  }

  /** Events that a reader may not find in the stream yet. `last`: number of the newest commit. */
  recent(asked: Asked<Item>) {
    return { ...this.#recent.page(asked), last: this.#last };
  }

  /** Stops publishing; resolves when the attempt under way has ended. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  get #hasWanted(): boolean {
    const [oldest] = this.#unpublished;
    return oldest !== undefined && oldest.number <= this.#wanted;
  }

  #wake(): void {
    if (this.#running !== undefined || this.#stopped.signal.aborted) return;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
      // More entries may be wanted since the last look.
      if (this.#hasWanted) this.#wake();
    });
  }

  async #run(): Promise<void> {
    const { kind, sink, onFailure } = this.#options;
    const { signal } = this.#stopped;
    const publish = async (): Promise<readonly EntryEvents<Item>[]> => {
      const batch = takeEntries(kind, this.#unpublished, this.#wanted);
      await sink.publish(eventMessages(kind, batch));
      return batch;
    };
    const onFailed = (error: unknown): void => {
      this.#isFailing = true;
      this.#progress();
      onFailure(error);
    };
    const pauseMs = (attempt: number): number =>
      backoffMs(attempt, { minMs: limits.storeRetryMinMs, maxMs: limits.storeRetryMaxMs });
    while (this.#hasWanted) {
      const batch = await retry(publish, { pauseMs, signal, onFailure: onFailed });
      if (batch === undefined) return;
      this.#unpublished = this.#unpublished.slice(batch.length);
      this.#isFailing = false;
      this.#recent.published(batch.flatMap(({ events }) => events));
      this.#progress();
      if (this.hasFreed) this.#whenFreed();
    }
  }

  #progress(): void {
    const waiting = this.#onProgress;
    this.#onProgress = [];
    for (const look of waiting) look();
  }
}
