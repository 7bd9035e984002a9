/**
 * The events of a tenant's containers. A message of the stream EVENTS holds a list of events of one
 * container; the owner of the tenant's partition has those that are not in the stream yet. Both are
 * merged by the ids of the events.
 *
 * Ask the owner first, then read the stream. An event that was committed before the owner answered
 * is in its answer, or was published so long before that every replica has it when the stream is
 * read. In the other order, an event that is published between the two would be missed.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import Type from 'typebox';
import type { Clock } from '../../lib/time/clock.ts';
import { DecodeError, decoder } from '../../lib/decode.ts';
import type { ReadMessage } from '../../lib/nats/direct-reads.ts';
import type { Author } from '../../schemas/api/audit/line.ts';
import { EventBody, type Event } from '../../schemas/api/event.ts';
import { compareEvents, partitionOfEvent, placeOfEvent } from '../../schemas/event-id.ts';
import type { ResetReason } from '../../schemas/api/frames.ts';
import type { RecentEvents } from '../../schemas/wire/answers.ts';
import { authorsHeader, EventAuthors } from '../../schemas/records/event-authors.ts';
import { limits } from '../../schemas/limits.ts';
import { minutes, KiB } from '../../schemas/limits/units.ts';
import type { PastCursor } from '../../schemas/api/cursor.ts';
import { PastReader, type PastFound, type PastRange } from './past.ts';
import type { Resumed } from './sse.ts';
import { SubjectReader } from './subject-reader.ts';
import { TailReader } from './tails.ts';

/** Memory for an event, and for its author: estimates. */
const tailEventBytes = 1 * KiB;
const tailAuthorBytes = 0.5 * KiB;

const decodeEvents = decoder(Type.Array(EventBody));
const decodeAuthors = decoder(EventAuthors);

/** The author of each event, in their order. */
function* authorsIn(runs: EventAuthors): Generator<Author | null, void, void> {
  for (const [count, by] of runs) for (let at = 0; at < count; at++) yield by;
}

/**
 * The position of a reader. A tenant's events come from one partition, in order. After a crash the
 * last ones are published again, so events up to the newest one that the reader was given are
 * repetitions.
 */
export interface EventPosition {
  /** Position in the stream to read from next. */
  readonly next: number;
  /** Id of the newest event that the reader was given. */
  readonly given: string | null;
}

export const beginning: EventPosition = { next: 1, given: null };

/** An event, and a position in the stream; the event is at this position or later. */
export interface PlacedEvent {
  readonly seq: number;
  readonly event: Event;
}

export interface EventPage {
  readonly events: readonly PlacedEvent[];
  readonly position: EventPosition;
  readonly more: boolean;
}

export interface NewestEvents extends EventPage {
  /** The beginning of the page of older events; `undefined` if there are none. */
  readonly older: PastCursor | undefined;
}

/**
 * The reason why a follower can't go on behind an event; `undefined` if it can. Pure.
 * @param oldest that is kept, with its partition
 * @param last entry that was committed; a later one was undone by a restore, and its number is used
 *   again
 */
export function resetOf(id: string, oldest: string | undefined, last: number): ResetReason | undefined {
  const entry = placeOfEvent(id)?.entry;
  if (entry === undefined || entry > last) return 'unknown';
  if (oldest !== undefined && partitionOfEvent(id) !== partitionOfEvent(oldest)) return 'unknown';
  return oldest === undefined || compareEvents(id, oldest) < 0 ? 'expired' : undefined;
}

/** The events among these that the reader was not given before. Pure. */
export function unseen(placed: readonly PlacedEvent[], from: EventPosition): EventPage {
  const events: PlacedEvent[] = [];
  let { given } = from;
  for (const place of placed) {
    const { id } = place.event;
    if (placeOfEvent(id) === undefined || (given !== null && compareEvents(id, given) <= 0)) continue;
    given = id;
    events.push(place);
  }
  return { events, position: { next: from.next, given }, more: false };
}

/** The newest `limit` events in the order in which they happened, each once. Pure. */
export function newestEvents(events: readonly PlacedEvent[], limit: number): readonly PlacedEvent[] {
  const sorted = events.toSorted((one, other) => compareEvents(one.event.id, other.event.id) || one.seq - other.seq);
  return sorted.filter(({ event }, at) => event.id !== sorted[at - 1]?.event.id).slice(-limit);
}

const positionAt = (next: number, events: readonly PlacedEvent[]): EventPosition => ({
  next,
  given: events.at(-1)?.event.id ?? null,
});

const placedAt = (events: readonly Event[], seq: number): readonly PlacedEvent[] =>
  events.map((event) => ({ seq, event }));

/** Events of their owner that the stream may not show yet. */
export interface Recent extends Pick<RecentEvents, 'more' | 'last'> {
  readonly events: readonly Event[];
}

export const recentOf = ({ events, by, more, last }: RecentEvents): Recent => ({
  events: events.map((event, index) => ({ ...event, by: by[index] ?? null })),
  more,
  last,
});

/** A page of the newest events, with those that only the owner has. Pure. */
export function withRecent(
  { events: stored, position: { next }, isWhole }: NewestStored,
  recent: readonly Event[],
  limit: number,
): NewestEvents {
  const all = newestEvents([...stored, ...placedAt(recent, next - 1)], Infinity);
  const events = all.slice(-limit);
  const [oldest] = events;
  const hasOlder = !isWhole || events.length < all.length;
  return {
    events,
    position: positionAt(next, events),
    more: false,
    older: hasOlder && oldest !== undefined ? { at: next - 1, id: oldest.event.id } : undefined,
  };
}

/**
 * A follower's page; after the last page of the stream come the events that only the owner has.
 * Pure.
 */
export function followedBy(page: EventPage, recent: Pick<Recent, 'events' | 'more'>): EventPage {
  if (page.more) return page;
  const { next } = page.position;
  const beyond = unseen(placedAt(recent.events, next - 1), page.position);
  return { events: [...page.events, ...beyond.events], position: beyond.position, more: recent.more };
}

function decoded<T>(decode: () => T, onMalformed: () => void): T | undefined {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    onMalformed();
    return undefined;
  }
}

/** The events of a message of the stream, with their authors. */
export function placedIn({ sequence: seq, head, data }: ReadMessage, onMalformed: () => void): PlacedEvent[] {
  const events = decoded(() => decodeEvents(data), onMalformed) ?? [];
  const header = head.get(authorsHeader);
  const runs = header === '' ? undefined : decoded(() => decodeAuthors(Buffer.from(header)), onMalformed);
  const authors = authorsIn(runs ?? []);
  return events.map((event) => ({ seq, event: { ...event, by: authors.next().value ?? null } }));
}

/** The newest events that the stream has. */
export interface NewestStored extends EventPage {
  /** True if the stream has no older ones. */
  readonly isWhole: boolean;
}

/** Messages of a subject that a page looks at. */
const pageMessages = 2048;
/** The clock of an owner may be so far ahead of that of the NATS servers. */
const ownerAheadMs = 5 * minutes;

export class EventReader {
  readonly #past: PastReader<Event>;
  readonly #reader: SubjectReader;
  readonly #onMalformed: () => void;
  readonly #tails: TailReader<PlacedEvent>;

  constructor(nc: Promise<NatsConnection>, clock: Clock, onMalformed: () => void) {
    this.#reader = new SubjectReader(nc, 'events', clock);
    this.#onMalformed = onMalformed;
    this.#past = new PastReader(this.#reader, {
      itemsOf: (message) => this.#place(message).map(({ event }) => event),
      aheadMs: ownerAheadMs,
      late: { timeOf: ({ ts }) => Date.parse(ts) },
      pageMessages,
    });
    this.#tails = new TailReader(this.#reader, clock, {
      newestIn: (messages) => this.#placeAll(messages),
      newestOf: newestEvents,
      bytesOf: ({ event }) => tailEventBytes + (event.by === null ? 0 : tailAuthorBytes),
      most: limits.eventsMax,
    });
  }

  /** The newest events of a subject, oldest first. */
  async newest(subject: string, limit: number): Promise<NewestStored> {
    const { items: events, next, isWhole } = await this.#tails.newest(subject, limit);
    return { events, position: positionAt(next, events), more: false, isWhole };
  }

  /** A part of the past. */
  past(range: PastRange<Event>): Promise<PastFound<Event>> {
    return this.#past.find(range);
  }

  /**
   * The position of a follower that last got this event; `undefined` if its client named none.
   * @param recent the owner's events from the oldest on
   */
  async resume(
    subject: string,
    given: string,
    { events, last }: Pick<Recent, 'events' | 'last'>,
  ): Promise<Resumed<EventPosition>> {
    const first = await this.#reader.firstFrom(subject, 1);
    const kept = [...(first === undefined ? [] : this.#place(first).map(({ event }) => event)), ...events];
    const oldest = kept.map(({ id }) => id).sort(compareEvents)[0];
    const reason = resetOf(given, oldest, last);
    if (reason !== undefined) return { position: beginning, reset: { reason, oldest: oldest ?? null } };
    const isBefore = (message: ReadMessage): boolean => {
      const [one] = this.#place(message);
      return one !== undefined && compareEvents(one.event.id, given) <= 0;
    };
    const end = await this.#reader.last(subject);
    const next =
      end !== undefined && isBefore(end) ? end.sequence : await this.#reader.positionBefore(subject, isBefore);
    return { position: { next, given } };
  }

  async after(subject: string, from: EventPosition): Promise<EventPage> {
    const { messages, pending } = await this.#reader.page(subject, from.next);
    const next = (messages.at(-1)?.sequence ?? from.next - 1) + 1;
    return { ...unseen(this.#placeAll(messages), { ...from, next }), more: pending > 0 };
  }

  #placeAll(messages: readonly ReadMessage[]): readonly PlacedEvent[] {
    return messages.flatMap((message) => this.#place(message));
  }

  #place(message: ReadMessage): readonly PlacedEvent[] {
    return placedIn(message, this.#onMalformed);
  }
}
