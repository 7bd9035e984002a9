/** `GET /operator/events/stream`: the events of all tenants, as they come. */
import { eventSeenByOperators } from '../../schemas/api/event.ts';
import type { StreamReset } from '../../schemas/api/frames.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import type { CallOf, HandlerOf } from '../call.ts';
import { placeIn, textOfPlace, type AllEventReader, type AllPage, type AllPosition } from '../streams/all-events.ts';
import type { Showing, StreamHost } from '../streams/host.ts';
import { follow } from '../streams/requests.ts';
import { resetFrames } from '../streams/sse.ts';

export interface OperatorEventsOptions {
  readonly allEvents: Pick<AllEventReader, 'newest' | 'after' | 'resume'>;
  readonly streams: Pick<StreamHost, 'withPermit' | 'follow'>;
}

type Call = CallOf<'event.stream_all'>;

const subjectOf = ({ query: { tenant } }: Call): string =>
  tenant === undefined ? subjects.allEvents : subjects.eventsOfTenant(tenant);

/** One client that follows. */
class AllEventsFollower {
  readonly #events: OperatorEventsOptions['allEvents'];
  readonly #call: Call;
  readonly #subject: string;
  /** `undefined` before the first read. */
  #position: AllPosition | undefined;
  /** Waits to be sent. */
  #reset: StreamReset | undefined;

  constructor({ allEvents }: OperatorEventsOptions, call: Call) {
    this.#events = allEvents;
    this.#call = call;
    this.#subject = subjectOf(call);
  }

  async show(): Promise<Showing> {
    const { type: types } = this.#call.query;
    const { events, position, more } = await this.#read();
    this.#position = position;
    const frames = events.flatMap(({ tenant, seq, event }) => {
      const seen = eventSeenByOperators(tenant, event);
      if (types?.includes(seen.type) === false) return [];
      return [{ id: textOfPlace({ seq, id: event.id }), event: 'event', data: JSON.stringify(seen) }];
    });
    const reset = resetFrames(this.#reset);
    this.#reset = undefined;
    return { frames: [...reset, ...frames], more, ended: false };
  }

  async #read(): Promise<AllPage> {
    const { lastEventId } = this.#call.exchange.head.headers;
    if (this.#position === undefined && lastEventId === undefined)
      return this.#events.newest(this.#subject, this.#call.query.limit);
    if (this.#position === undefined) {
      const { position, reset } = await this.#events.resume(this.#subject, placeIn(lastEventId ?? ''));
      // Kept even if the next read fails, so that it is looked up only once.
      this.#position = position;
      this.#reset = reset;
    }
    return this.#events.after(this.#subject, this.#position);
  }
}

export const operatorEvents =
  (options: OperatorEventsOptions): HandlerOf<'event.stream_all'> =>
  (call) => {
    const follower = new AllEventsFollower(options, call);
    return follow(options, call, subjectOf(call), () => follower.show());
  };
