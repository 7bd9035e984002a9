/**
 * The events of all tenants, as the stream EVENTS has them. Events of one partition are in their
 * order there; those of several have none but that of the stream, so a place is a position in it.
 * An event that its owner has not published yet comes a moment later here than to its tenant.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import type { ReadMessage } from '../../lib/nats/direct-reads.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { TenantId } from '../../schemas/ids.ts';
import { compareEvents, partitionOfEvent } from '../../schemas/event-id.ts';
import { limits } from '../../schemas/limits.ts';
import { subjects, tenantOfEventSubject } from '../../schemas/wire/subjects.ts';
import { placedIn, type PlacedEvent } from './events.ts';
import type { Resumed } from './sse.ts';
import { SubjectReader } from './subject-reader.ts';

/** An event of a tenant, at its position in the stream. */
export interface TenantEvent extends PlacedEvent {
  readonly tenant: TenantId;
}

/** The content of a frame's id: an event and its position in the stream. */
export interface EventPlace {
  readonly seq: number;
  readonly id: string;
}

/** The position of a reader. */
export interface AllPosition {
  /** Position in the stream to read from next. */
  readonly next: number;
  /** Id of the newest event that the reader was given, by partition: an event may come again. */
  readonly given: ReadonlyMap<string, string>;
}

export interface AllPage {
  readonly events: readonly TenantEvent[];
  readonly position: AllPosition;
  readonly more: boolean;
}

const start: AllPosition = { next: 1, given: new Map() };

export const textOfPlace = ({ seq, id }: EventPlace): string => `${seq}.${id}`;

/** The place that `Last-Event-ID` names; undefined if it is none of ours. */
export function placeIn(lastEventId: string): EventPlace | undefined {
  const [, seq, id] = /^(\d{1,15})\.(\d{1,6}-\d{1,15}-\d{1,6})$/.exec(lastEventId) ?? [];
  return seq === undefined || id === undefined ? undefined : { seq: Number(seq), id };
}

/** The events among these that the reader was not given before. Pure. */
export function newAmong(events: readonly TenantEvent[], position: AllPosition): Omit<AllPage, 'more'> {
  const given = new Map(position.given);
  const fresh = events.filter(({ event: { id } }) => {
    const before = given.get(partitionOfEvent(id));
    if (before !== undefined && compareEvents(id, before) <= 0) return false;
    given.set(partitionOfEvent(id), id);
    return true;
  });
  return { events: fresh, position: { next: position.next, given } };
}

export class AllEventReader {
  readonly #reader: SubjectReader;
  readonly #onMalformed: () => void;

  constructor(nc: Promise<NatsConnection>, clock: Clock, onMalformed: () => void) {
    this.#reader = new SubjectReader(nc, 'events', clock);
    this.#onMalformed = onMalformed;
  }

  /** The newest events, in the order of the stream. */
  async newest(subject: string, limit: number): Promise<AllPage> {
    const take = async (pages: AsyncIterable<readonly ReadMessage[]>) => {
      let events: readonly TenantEvent[] = [];
      let position = start;
      for await (const messages of pages) {
        const found = newAmong(this.#eventsIn(messages), position);
        events = [...events, ...found.events].slice(-limit);
        position = { ...found.position, next: (messages.at(-1)?.sequence ?? position.next - 1) + 1 };
      }
      return { events, position };
    };
    return { ...(await this.#reader.newest(subject, take, ({ events }) => events.length / limit)), more: false };
  }

  async after(subject: string, from: AllPosition): Promise<AllPage> {
    const { messages, pending } = await this.#reader.page(subject, from.next);
    const next = (messages.at(-1)?.sequence ?? from.next - 1) + 1;
    return { ...newAmong(this.#eventsIn(messages), { ...from, next }), more: pending > 0 };
  }

  /** The position of a follower that last got the event at this place. */
  async resume(subject: string, place: EventPlace | undefined): Promise<Resumed<AllPosition>> {
    const first = await this.#reader.firstFrom(subject, 1);
    const [oldest] = first === undefined ? [] : this.#eventsIn([first]);
    const shown = oldest === undefined ? null : textOfPlace({ seq: oldest.seq, id: oldest.event.id });
    const reason = place === undefined ? 'unknown' : await this.#faultOf(place);
    if (place === undefined || reason !== undefined)
      return { position: start, reset: { reason: reason ?? 'unknown', oldest: shown } };
    // The message has other events of its container, perhaps after this one.
    return { position: { next: place.seq, given: new Map([[partitionOfEvent(place.id), place.id]]) } };
  }

  /**
   * The reason why a follower can't go on behind the place; `undefined` if it can. Messages that
   * are gone from there may have had others behind them.
   */
  async #faultOf({ seq, id }: EventPlace): Promise<'unknown' | 'expired' | undefined> {
    const message = await this.#messageFrom(seq);
    if (message === undefined) return 'unknown';
    if (message.sequence > seq) return 'expired';
    return this.#eventsIn([message]).some(({ event }) => event.id === id) ? undefined : 'unknown';
  }

  /** The first message of all tenants from there on. Any replica answers, and one may lag. */
  async #messageFrom(seq: number): Promise<ReadMessage | undefined> {
    for (let attempt = 0; attempt < limits.streamReadAttempts; attempt++) {
      const message = await this.#reader.firstFrom(subjects.allEvents, seq);
      if (message !== undefined) return message;
    }
    return undefined;
  }

  #eventsIn(messages: readonly ReadMessage[]): readonly TenantEvent[] {
    return messages.flatMap((message) => {
      const tenant = tenantOfEventSubject(message.subject);
      return placedIn(message, this.#onMalformed).map((placed) => ({ ...placed, tenant }));
    });
  }
}
