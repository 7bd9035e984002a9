/** Logs and events, as lists and as streams, and waits for a status. */
import type { AnswerOf } from '../../schemas/wire/asks.ts';
import type { Event } from '../../schemas/api/event.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import type { ContainerTrace } from '../../schemas/wire/answers.ts';
import type { RecentAsk } from '../../schemas/wire/asks.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import { limits } from '../../schemas/limits.ts';
import type { LaneKind, Outcome } from '../../lib/rpc/partition-client.ts';
import {
  containerOf,
  succeeded,
  tenantOf,
  type Call,
  type Handled,
  type Handler,
  type Services,
} from '../http/call.ts';
import { failure, ok } from '../http/respond.ts';
import {
  beginning,
  followedBy,
  frameIdOf,
  parseFrameId,
  withRecent,
  type EventPage,
  type EventPosition,
} from './events.ts';
import type { Doorbell, Guest, Showing } from './host.ts';
import type { LogPosition } from './logs.ts';
import { decodeAnswer } from '../../lib/rpc/decode.ts';

/** Events of one container, or of all of the tenant's. */
interface EventScope {
  readonly container: ContainerId | null;
}
type RecentQuestion = EventScope & Pick<RecentAsk, 'from' | 'limit'>;

/** The owner refused or failed; its outcome is the answer to the request. */
class AskError extends Error {
  readonly outcome: Outcome;
  constructor(outcome: Outcome) {
    super(`the owner answered ${outcome.code}`);
    this.name = 'AskError';
    this.outcome = outcome;
  }
}

type StatusSeen = AnswerOf<'container.status'>['data'];
type Traced = { readonly ok: true; readonly trace: ContainerTrace } | { readonly ok: false; readonly outcome: Outcome };

export function streamHandlers(services: Services) {
  const { clock, streams } = services;

  /**
   * Whose container it is, where it has run, and whether it is gone; the owner checks the tenant
   * (A6).
   */
  const traceOf = async (call: Call, kind: LaneKind, deadlineMs: number): Promise<Traced> => {
    const question = { type: 'container.trace', tenant: tenantOf(call), id: containerOf(call), rid: call.requestId };
    const outcome = await services.ask(kind, { ...question, type: 'container.trace' }, deadlineMs);
    if (!succeeded(outcome)) return { ok: false, outcome };
    return { ok: true, trace: decodeAnswer('container.trace', outcome.body).data };
  };

  const statusOf = (call: Call, deadlineMs: number): Promise<Outcome> =>
    services.ask(
      'watch',
      { type: 'container.status', tenant: tenantOf(call), id: containerOf(call), rid: call.requestId },
      deadlineMs,
    );

  /**
   * What keeps a stream from being read is a server that is away or without a leader for now, or an
   * owner that is.
   */
  const readNow = async (call: Call, read: () => Promise<unknown>): Promise<Handled> => {
    try {
      return ok(await read());
    } catch (error) {
      if (error instanceof AskError) return error.outcome;
      services.log.warn('stream_unreadable', { requestId: call.requestId, error });
      return failure('unavailable');
    }
  };

  /** A stream in one of the tenant's places. `show` is called once it has the place. */
  const follow = async (call: Call, doorbell: string, show: () => Promise<Showing>): Promise<Handled> => {
    const { identity } = call;
    if (identity === undefined) return failure('unauthenticated');
    return streams.withPlace<Handled>(guestOf(call), async () => {
      await streams.follow({ exchange: call.exchange, requestId: call.requestId, identity, doorbell, show });
      return 'streamed';
    });
  };

  const logs: Handler = async (call) => {
    const traced = await traceOf(call, 'read', call.deadlineMs);
    if (!traced.ok) return traced.outcome;
    const { history } = traced.trace;
    const [tenant, id, limit] = [tenantOf(call), containerOf(call), Number(call.query['limit'])];
    if (call.query['follow'] !== true || call.exchange.head.method === 'HEAD') {
      return readNow(call, async () => (await services.logs.newest(tenant, id, history, limit)).entries);
    }
    return follow(call, subjects.hostLog('*', tenant, id), followLogs(call, limit));
  };

  /**
   * Shows lines as they come; ended when the container is gone and nothing came for as long as an
   * agent drains.
   */
  const followLogs = (call: Call, limit: number): (() => Promise<Showing>) => {
    const [tenant, id] = [tenantOf(call), containerOf(call)];
    const resumeSeq = sequenceOf(call.exchange.head.headers.lastEventId);
    let position: LogPosition | undefined;
    let quietSinceMs = clock.monotonicMs();
    return async () => {
      const traced = await traceOf(call, 'watch', clock.monotonicMs() + limits.watchAskMs);
      // Its seven days are over, and its owner has forgotten it.
      if (!traced.ok && traced.outcome.code === 'not_found') return { frames: [], more: false, ended: true };
      if (!traced.ok) throw new Error(`trace: ${traced.outcome.code}`);
      const { history, gone } = traced.trace;
      if (position === undefined && resumeSeq !== undefined) {
        position = await services.logs.positionAfter(tenant, id, history, resumeSeq);
      }
      const page =
        position === undefined
          ? await services.logs.newest(tenant, id, history, limit)
          : await services.logs.after(tenant, id, history, position);
      // A host that left the history keeps its position: the container may return to it.
      position = new Map([...(position ?? []), ...page.position]);
      if (page.entries.length > 0) quietSinceMs = clock.monotonicMs();
      return {
        frames: page.entries.map((entry) => ({ id: String(entry.seq), event: 'log', data: JSON.stringify(entry) })),
        more: page.more,
        ended: gone && !page.more && clock.monotonicMs() - quietSinceMs >= limits.logDrainMs,
      };
    };
  };

  /** Events that the owner knows and the stream may not show yet. */
  const recentOf = async (call: Call, kind: LaneKind, { container, ...rest }: RecentQuestion, deadlineMs: number) => {
    const question = { type: 'event.recent', tenant: tenantOf(call), container, rid: call.requestId, ...rest } as const;
    const outcome = await services.ask(kind, question, deadlineMs);
    if (!succeeded(outcome)) throw new AskError(outcome);
    return decodeAnswer('event.recent', outcome.body).data;
  };

  /** The newest `limit` of those, page by page. */
  const newestRecent = async (call: Call, kind: LaneKind, scope: EventScope, limit: number, deadlineMs: number) => {
    let events: readonly Event[] = [];
    for (;;) {
      const from = { before: events[0]?.id ?? null };
      const page = await recentOf(call, kind, { ...scope, from, limit: limit - events.length }, deadlineMs);
      events = [...page.events, ...events];
      if (!page.more || page.events.length === 0 || events.length >= limit) return events;
    }
  };

  const newestEvents = async (call: Call, kind: LaneKind, scope: EventScope, limit: number, deadlineMs: number) => {
    // The owner first: see streams/events.ts.
    const recent = await newestRecent(call, kind, scope, limit, deadlineMs);
    return withRecent(await services.events.newest(subjectOf(call, scope), limit), recent, limit);
  };

  const subjectOf = (call: Call, { container }: EventScope): string =>
    container === null ? subjects.eventsOfTenant(tenantOf(call)) : subjects.event(tenantOf(call), container);

  const eventsOf = async (call: Call, scope: EventScope): Promise<Handled> => {
    const limit = Number(call.query['limit']);
    if (call.query['follow'] !== true || call.exchange.head.method === 'HEAD') {
      return readNow(call, async () => {
        const { events } = await newestEvents(call, 'read', scope, limit, call.deadlineMs);
        return events.map(({ event }) => event);
      });
    }
    return follow(call, subjectOf(call, scope), followEvents(call, scope, limit));
  };

  const followEvents = (call: Call, scope: EventScope, limit: number): (() => Promise<Showing>) => {
    const { lastEventId } = call.exchange.head.headers;
    const frame = lastEventId === undefined ? undefined : parseFrameId(lastEventId);
    let position: EventPosition | undefined;
    const look = async (deadlineMs: number): Promise<EventPage> => {
      if (position === undefined && frame === undefined) return newestEvents(call, 'watch', scope, limit, deadlineMs);
      const given = position === undefined ? (frame?.eventId ?? null) : position.given;
      // The owner first: see streams/events.ts.
      const from = { after: given ?? '' };
      const recent = await recentOf(call, 'watch', { ...scope, from, limit: limits.eventsMax }, deadlineMs);
      const subject = subjectOf(call, scope);
      position ??= frame === undefined ? beginning : await services.events.positionAfter(subject, frame, recent);
      return followedBy(await services.events.after(subject, position), recent);
    };
    return async () => {
      const page = await look(clock.monotonicMs() + limits.watchAskMs);
      position = page.position;
      const frames = page.events.map((placed) => ({
        id: frameIdOf(placed),
        event: 'event',
        data: JSON.stringify(placed.event),
      }));
      return { frames, more: page.more, ended: false };
    };
  };

  const containerEvents: Handler = async (call) => {
    const traced = await traceOf(call, 'read', call.deadlineMs);
    return traced.ok ? eventsOf(call, { container: containerOf(call) }) : traced.outcome;
  };

  const wait: Handler = async (call) => {
    const [tenant, id] = [tenantOf(call), containerOf(call)];
    const deadlineMs = clock.monotonicMs() + Number(call.query['timeout']) * 1000;
    const wanted = String(call.query['status']);
    return streams.withPlace(guestOf(call), () =>
      streams.withDoorbell(subjects.changed(tenant, id), call.exchange, (doorbell) =>
        waitFor(call, wanted, deadlineMs, doorbell),
      ),
    );
  };

  const waitFor = async (call: Call, wanted: string, deadlineMs: number, doorbell: Doorbell): Promise<Handled> => {
    let last: StatusSeen | undefined;
    for (;;) {
      const outcome = await statusOf(call, Math.min(deadlineMs, clock.monotonicMs() + limits.watchAskMs));
      const step = judgeWait(wanted, outcome, last);
      if (step.kind === 'answer') return step.outcome;
      last = step.last;
      const leftMs = deadlineMs - clock.monotonicMs();
      if (leftMs <= 0) return failure('timeout', `the container was not ${wanted} within the timeout; ask again`);
      if (call.exchange.aborted || streams.waitsOver()) return failure('unavailable');
      await doorbell.wait(Math.min(streams.polls.waitMs, leftMs));
    }
  };

  return {
    'container.logs': logs,
    'container.events': containerEvents,
    'event.list': ((call) => eventsOf(call, { container: null })) satisfies Handler,
    'container.wait': wait,
  };
}

const guestOf = (call: Call): Guest => ({
  tenant: tenantOf(call),
  client: call.client,
  route: call.route,
  leaveSeat: call.leaveSeat,
});

/** A line's number in `Last-Event-ID`; undefined where there is none. */
const sequenceOf = (lastEventId: string | undefined): number | undefined =>
  lastEventId !== undefined && /^\d{1,16}$/.test(lastEventId) ? Number(lastEventId) : undefined;

export type WaitStep =
  | { readonly kind: 'answer'; readonly outcome: Outcome }
  | { readonly kind: 'wait'; readonly last: StatusSeen | undefined };

/**
 * The next step of a wait, given the status. A container that is being removed reaches no other
 * status: 409 for those. One that is gone ends a wait for `removed` with its last view.
 */
export function judgeWait(wanted: string, outcome: Outcome, last: StatusSeen | undefined): WaitStep {
  const answer = (given: Outcome): WaitStep => ({ kind: 'answer', outcome: given });
  if (outcome.code === 'not_found') {
    return wanted === 'removed' && last !== undefined
      ? answer(ok({ ...last, status: 'removing', desired: 'removed' } satisfies StatusSeen))
      : answer(outcome);
  }
  // The owner is away: ask again until the timeout.
  if (!succeeded(outcome)) return { kind: 'wait', last };
  const view = decodeAnswer('container.status', outcome.body).data;
  if (view.status === wanted) return answer(outcome);
  if (view.status === 'removing' && wanted !== 'removed')
    return answer(failure('conflict', 'the container is being removed'));
  return { kind: 'wait', last: view };
}
