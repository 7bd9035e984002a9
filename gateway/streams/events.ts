/** What happened to a tenant's containers, from the stream EVENTS. A message holds a list of events of one container. */
import type { NatsConnection } from '@nats-io/transport-node';
import Type from 'typebox';
import type { Clock } from '../../lib/clock.ts';
import { DecodeError, decoder } from '../../lib/decode.ts';
import type { ReadMessage } from '../../lib/stream-read.ts';
import { streams } from '../../schemas/buckets.ts';
import { Event } from '../../schemas/event.ts';
import { SubjectReader } from './subject-reader.ts';

const decodeEvents = decoder(Type.Array(Event));

/**
 * How far a reader is. A tenant's events come from one partition, in the order of its journal's entries; after a crash
 * the last entries are published again. So an event of an entry below the highest seen was given, and within the highest
 * the ids tell.
 */
export interface EventPosition {
  /** Position in the stream to read from next. */
  readonly next: number;
  readonly entry: number;
  readonly givenOfEntry: ReadonlySet<string>;
}

export const beginning: EventPosition = { next: 1, entry: -1, givenOfEntry: new Set() };

/** An event with its place in the stream. */
export interface PlacedEvent {
  readonly seq: number;
  readonly event: Event;
}

export interface EventPage {
  readonly events: readonly PlacedEvent[];
  readonly position: EventPosition;
  readonly more: boolean;
}

/** What `Last-Event-ID` holds: where to read, and what was given last. */
export interface FrameId {
  readonly seq: number;
  readonly eventId: string;
}

/** How far back of a resumed position its entry's events are looked for; they were published together. */
const resumeLookBack = 1000;

const entryPattern = /^\d{1,6}-(\d{1,15})-\d{1,6}$/;
const frameIdPattern = /^(\d{1,15})\.(\d{1,6}-\d{1,15}-\d{1,6})$/;

/** The journal entry that an event's id names; undefined where it is none of ours. */
export function entryOf(eventId: string): number | undefined {
  const entry = entryPattern.exec(eventId)?.[1];
  return entry === undefined ? undefined : Number(entry);
}

export const frameIdOf = ({ seq, event }: PlacedEvent): string => `${seq}.${event.id}`;

/** Undefined where the text is none of ours: the stream then starts as if there were none. */
export function parseFrameId(text: string): FrameId | undefined {
  const [, seq, eventId] = frameIdPattern.exec(text) ?? [];
  return seq === undefined || eventId === undefined ? undefined : { seq: Number(seq), eventId };
}

/** What of some messages was not given before. Pure. */
export function unseen(
  placed: readonly PlacedEvent[],
  from: EventPosition,
): { readonly events: readonly PlacedEvent[]; readonly position: EventPosition } {
  const events: PlacedEvent[] = [];
  let { entry: highest } = from;
  let given = new Set(from.givenOfEntry);
  for (const place of placed) {
    const entry = entryOf(place.event.id);
    if (entry === undefined || entry < highest || (entry === highest && given.has(place.event.id))) continue;
    if (entry > highest) given = new Set();
    highest = entry;
    given.add(place.event.id);
    events.push(place);
  }
  return { events, position: { next: from.next, entry: highest, givenOfEntry: given } };
}

export class EventReader {
  readonly #reader: SubjectReader;
  readonly #onMalformed: () => void;

  constructor(nc: Promise<NatsConnection>, clock: Clock, onMalformed: () => void) {
    this.#reader = new SubjectReader(nc, streams.events.name, clock);
    this.#onMalformed = onMalformed;
  }

  /** The newest events of a subject, oldest first, and where a follower goes on from there. */
  newest(subject: string, limit: number): Promise<EventPage> {
    const read = async (pages: AsyncIterable<readonly ReadMessage[]>): Promise<EventPage> => {
      let events: readonly PlacedEvent[] = [];
      let position = beginning;
      for await (const messages of pages) {
        const page = this.#unseen(messages, position);
        events = [...events, ...page.events].slice(-limit);
        position = page.position;
      }
      return { events, position, more: false };
    };
    return this.#reader.newest(subject, read, ({ events }) => events.length / limit);
  }

  async after(subject: string, position: EventPosition): Promise<EventPage> {
    const { messages, pending } = await this.#reader.page(subject, position.next);
    return { ...this.#unseen(messages, position), more: pending > 0 };
  }

  /** Where a follower goes on that was given the event of this frame last. */
  async positionAfter(subject: string, frame: FrameId): Promise<EventPosition> {
    const entry = entryOf(frame.eventId);
    const { messages } = await this.#reader.page(subject, Math.max(1, frame.seq - resumeLookBack));
    const known = messages.filter(({ sequence }) => sequence <= frame.seq).flatMap((message) => this.#place(message));
    const at = known.findIndex(({ event }) => event.id === frame.eventId);
    if (entry === undefined || at < 0) {
      const [newest] = (await this.newest(subject, 1)).events;
      // Later than all there is: of a past that a restore took back. The same numbers are given again.
      if (newest !== undefined && (entryOf(newest.event.id) ?? -1) < (entry ?? -1)) return beginning;
      // Expired: from the beginning, with what the event's number still tells.
      return { ...beginning, entry: entry ?? -1, givenOfEntry: new Set([frame.eventId]) };
    }
    const given = known.slice(0, at + 1).filter(({ event }) => entryOf(event.id) === entry);
    return { next: frame.seq, entry, givenOfEntry: new Set(given.map(({ event }) => event.id)) };
  }

  #unseen(messages: readonly ReadMessage[], from: EventPosition): Omit<EventPage, 'more'> {
    const { events, position } = unseen(
      messages.flatMap((message) => this.#place(message)),
      from,
    );
    return { events, position: { ...position, next: (messages.at(-1)?.sequence ?? from.next - 1) + 1 } };
  }

  #place({ sequence: seq, data }: ReadMessage): PlacedEvent[] {
    try {
      return decodeEvents(data).map((event) => ({ seq, event }));
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      this.#onMalformed();
      return [];
    }
  }
}
