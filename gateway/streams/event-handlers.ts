/** `GET /:id/events` and `GET /events`: the events that are kept, or a stream of them. */
import { decodePastCursor, encodePastCursor, type PastCursor } from '../../schemas/api/cursor.ts';
import { eventSeenBy, type Event } from '../../schemas/api/event.ts';
import { compareEvents } from '../../schemas/event-id.ts';
import type { StreamReset } from '../../schemas/api/frames.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { RecentAsk } from '../../schemas/wire/asks.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import type { Log } from '../../lib/log.ts';
import type { AskOwner, LaneKind } from '../../lib/rpc/partition-client.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import { succeeded, tenantOf, type Call, type CallOf, type Handled, type HandlerOf } from '../call.ts';
import {
  followedBy,
  recentOf,
  withRecent,
  type EventPage,
  type EventPosition,
  type EventReader,
  type NewestEvents,
  type Recent,
} from './events.ts';
import type { Showing, StreamHost } from './host.ts';
import { FollowedMetadata, metadataOf } from '../compute/metadata.ts';
import { pageResult, wrongCursor } from '../http/pages.ts';
import { invalid, type Result } from '../http/respond.ts';
import { pageOf, type PastPage, type PastRange, type Placed } from './past.ts';
import { resetFrames } from './sse.ts';
import { AskError, follow, pastOf, readNow, traceOf, wantsAnswer, type Past } from './requests.ts';

export interface EventRoutesOptions {
  readonly ask: AskOwner;
  readonly events: Pick<EventReader, 'newest' | 'past' | 'after' | 'resume'>;
  readonly streams: Pick<StreamHost, 'withPermit' | 'follow'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** The events that one request is about: of one container, or of all of the tenant's. */
class EventSource {
  readonly #options: EventRoutesOptions;
  readonly #call: Call;
  readonly #container: ContainerId | null;
  readonly #metadata = new FollowedMetadata();

  constructor(options: EventRoutesOptions, call: Call, container: ContainerId | null) {
    this.#options = options;
    this.#call = call;
    this.#container = container;
  }

  subject(): string {
    const tenant = tenantOf(this.#call);
    return this.#container === null ? subjects.eventsOfTenant(tenant) : subjects.event(tenant, this.#container);
  }

  /** As the tenant sees them, with the labels of their containers. */
  async shown(events: readonly Event[], kind: LaneKind, deadlineMs: number): Promise<Event[]> {
    const seen = events.map((event) => eventSeenBy(tenantOf(this.#call), event));
    const metadata = await this.#metadata.of(seen, (ids) =>
      metadataOf(this.#options, this.#call, ids, { kind, deadlineMs }),
    );
    return seen.map((event) => ({ ...event, ...metadata.get(event.container_id) }));
  }

  /** Asks the owner first, then reads the stream: see streams/events.ts. */
  async newest(kind: LaneKind, limit: number, deadlineMs: number): Promise<NewestEvents> {
    const recent = await this.#newestRecent(kind, limit, deadlineMs);
    return withRecent(await this.#options.events.newest(this.subject(), limit), recent, limit);
  }

  /** Events that the owner knows and the stream may not show yet. */
  async recent(kind: LaneKind, from: RecentAsk['from'], limit: number, deadlineMs: number): Promise<Recent> {
    const question = {
      type: 'event.recent',
      tenant: tenantOf(this.#call),
      container: this.#container,
      from,
      limit,
      ...this.#call.origin,
    } as const;
    const outcome = await this.#options.ask(kind, question, deadlineMs);
    if (!succeeded(outcome)) throw new AskError(outcome);
    const { data } = decodeAnswer('event.recent', outcome.body);
    return recentOf(data);
  }

  /** A page of the past. Asks the owner first. */
  async past(wish: EventWish, deadlineMs: number): Promise<PastPage<Event>> {
    const { order, sinceMs: fromMs, untilMs: toMs, types, cursor, limit } = wish;
    const given = cursor?.id ?? '';
    const isOfPage = (event: Event): boolean => {
      const ms = Date.parse(event.ts);
      const direction = given === '' ? 1 : compareEvents(event.id, given) * (order === 'asc' ? 1 : -1);
      if (direction <= 0 || ms < (fromMs ?? -Infinity) || ms >= (toMs ?? Infinity)) return false;
      return types === undefined || types.includes(eventSeenBy(tenantOf(this.#call), event).type);
    };
    const matches = ({ item }: Placed<Event>): boolean => isOfPage(item);
    const recent = await this.#recentBeside(wish, deadlineMs);
    const range: PastRange<Event> = {
      ...{ subject: this.subject(), order, fromMs, toMs, at: cursor?.at, matches },
      wanted: limit + 1,
    };
    const found = await this.#options.events.past(range);
    // Events that only the owner has come after all of the stream.
    const end = order === 'asc' ? (found.items.at(-1)?.at ?? cursor?.at) : undefined;
    const beside = order === 'asc' && found.next !== undefined ? [] : recent.events.filter(isOfPage);
    const all = [...found.items, ...beside.map((item) => ({ item, at: end }))];
    const sign = order === 'asc' ? 1 : -1;
    all.sort((one, other) => sign * compareEvents(one.item.id, other.item.id));
    const page = pageOf(all, found, { cursor, limit });
    const last = page.items.at(-1);
    const isCut = recent.more && page.next === undefined && last !== undefined;
    return isCut ? { ...page, next: { at: end, id: last.id } } : page;
  }

  /** The events that the stream may not have yet, as far as a page can reach. */
  async #recentBeside(
    { order, cursor, limit }: EventWish,
    deadlineMs: number,
  ): Promise<Pick<Recent, 'events' | 'more'>> {
    const given = cursor?.id ?? '';
    if (order === 'asc') return this.recent('read', { after: given }, limits.eventsMax, deadlineMs);
    return { events: await this.#newestRecent('read', limit, deadlineMs, given === '' ? null : given), more: false };
  }

  async #newestRecent(
    kind: LaneKind,
    limit: number,
    deadlineMs: number,
    before: string | null = null,
  ): Promise<readonly Event[]> {
    let events: readonly Event[] = [];
    for (;;) {
      const page = await this.recent(kind, { before: events[0]?.id ?? before }, limit - events.length, deadlineMs);
      events = [...page.events, ...events];
      if (!page.more || page.events.length === 0 || events.length >= limit) return events;
    }
  }
}

interface EventWish extends Omit<Past, 'isReversed'> {
  /** `undefined` for all. */
  readonly types: readonly string[] | undefined;
  readonly cursor: PastCursor | undefined;
  readonly limit: number;
}

/**
 * The place where a follower continues: at the newest event, after the one that the client names,
 * or after a page.
 */
type Place =
  | { readonly kind: 'newest' }
  | { readonly kind: 'named'; readonly lastEventId: string }
  | { readonly kind: 'position'; readonly position: EventPosition };

function firstPlace({ exchange }: Call): Place {
  const { lastEventId } = exchange.head.headers;
  return lastEventId === undefined ? { kind: 'newest' } : { kind: 'named', lastEventId };
}

/** One client that follows events. */
class EventFollower {
  readonly #options: EventRoutesOptions;
  readonly #source: EventSource;
  readonly #limit: number;
  #place: Place;
  /** Waits to be sent. */
  #reset: StreamReset | undefined;

  constructor(options: EventRoutesOptions, source: EventSource, call: Call, limit: number) {
    this.#options = options;
    this.#source = source;
    this.#limit = limit;
    this.#place = firstPlace(call);
  }

  async show(): Promise<Showing> {
    const deadlineMs = this.#options.clock.monotonicMs() + limits.watchAskMs;
    const page = await this.#read(deadlineMs);
    const shown = await this.#source.shown(
      page.events.map(({ event }) => event),
      'watch',
      deadlineMs,
    );
    this.#place = { kind: 'position', position: page.position };
    const frames = shown.map((event) => ({ id: event.id, event: 'event', data: JSON.stringify(event) }));
    const reset = resetFrames(this.#reset);
    this.#reset = undefined;
    return { frames: [...reset, ...frames], more: page.more, ended: false };
  }

  async #read(deadlineMs: number): Promise<EventPage> {
    const place = this.#place;
    if (place.kind === 'newest') return this.#source.newest('watch', this.#limit, deadlineMs);
    const given = place.kind === 'named' ? null : place.position.given;
    // Asks the owner first: see streams/events.ts.
    const recent = await this.#source.recent('watch', { after: given ?? '' }, limits.eventsMax, deadlineMs);
    const subject = this.#source.subject();
    const { events } = this.#options;
    if (place.kind === 'position') return followedBy(await events.after(subject, place.position), recent);
    const { position, reset } = await events.resume(subject, place.lastEventId, recent);
    // Kept even if the next read fails, so that it is looked up only once.
    this.#place = { kind: 'position', position };
    this.#reset = reset;
    return followedBy(await events.after(subject, position), recent);
  }
}

async function eventsOf(
  options: EventRoutesOptions,
  call: CallOf<'container.events' | 'event.list'>,
  container: ContainerId | null,
): Promise<Handled> {
  const { limit, type: types, cursor: text } = call.query;
  const source = new EventSource(options, call, container);
  const past = pastOf(call, { type: types });
  if (past !== undefined && 'faults' in past) return invalid(past.faults);
  const list = async (events: readonly Event[], next: PastCursor | undefined): Promise<Result> => {
    const shown = await source.shown(events, 'read', call.deadlineMs);
    return pageResult(shown, next === undefined ? undefined : encodePastCursor(next));
  };
  if (past !== undefined) {
    const cursor = text === undefined ? undefined : decodePastCursor(text);
    if (text !== undefined && cursor === undefined) return wrongCursor;
    return readNow(options, call, async () => {
      const { items, next } = await source.past({ ...past, types, cursor, limit }, call.deadlineMs);
      return list(past.isReversed ? items.toReversed() : items, next);
    });
  }
  if (wantsAnswer(call)) {
    return readNow(options, call, async () => {
      const { events, older } = await source.newest('read', limit, call.deadlineMs);
      return list(
        events.map(({ event }) => event),
        older,
      );
    });
  }
  return streamOf(options, source, call, limit);
}

function streamOf(options: EventRoutesOptions, source: EventSource, call: Call, limit: number): Promise<Handled> {
  const follower = new EventFollower(options, source, call, limit);
  return follow(options, call, source.subject(), () => follower.show());
}

export function eventRoutes(options: EventRoutesOptions) {
  const ofContainer: HandlerOf<'container.events'> = async (call) => {
    const traced = await traceOf(options, call, 'read', call.deadlineMs);
    return traced.ok ? eventsOf(options, call, call.params.id) : traced.outcome;
  };
  const streamOfContainer: HandlerOf<'container.events.stream'> = async (call) => {
    const traced = await traceOf(options, call, 'read', call.deadlineMs);
    if (!traced.ok) return traced.outcome;
    return streamOf(options, new EventSource(options, call, call.params.id), call, call.query.limit);
  };
  const ofTenant: HandlerOf<'event.list'> = (call) => eventsOf(options, call, null);
  const streamOfTenant: HandlerOf<'event.stream'> = (call) =>
    streamOf(options, new EventSource(options, call, null), call, call.query.limit);
  return {
    'container.events': ofContainer,
    'container.events.stream': streamOfContainer,
    'event.list': ofTenant,
    'event.stream': streamOfTenant,
  };
}
