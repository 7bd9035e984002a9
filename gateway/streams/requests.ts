/** Parts that the handlers of logs, events and waits share. */
import type { FieldErrors } from '../../schemas/errors.ts';
import type { ContainerTrace } from '../../schemas/wire/answers.ts';
import type { Log } from '../../lib/log.ts';
import type { AskOwner, LaneKind, Outcome } from '../../lib/rpc/partition-client.ts';
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import { succeeded, tenantOf, type Call, type CallOf, type Handled } from '../call.ts';
import { failure, type Result } from '../http/respond.ts';
import { periodIn } from '../validation/timestamp.ts';
import type { Bell, Guest, Showing, StreamHost } from './host.ts';
import type { Order } from './past.ts';
import { sseHeaders } from './sse.ts';

/** The owner refused or failed; its outcome is the answer to the request. */
export class AskError extends Error {
  override readonly name = 'AskError';
  readonly outcome: Outcome;

  constructor(outcome: Outcome) {
    super(`the owner answered ${outcome.code}`);
    this.outcome = outcome;
  }
}

export type Traced =
  { readonly ok: true; readonly trace: ContainerTrace } | { readonly ok: false; readonly outcome: Outcome };

/** Routes about the past of one container. */
export type TracedRoute = 'container.logs' | 'container.events' | 'container.logs.stream' | 'container.events.stream';

/**
 * The hosts that the container has run on, and whether it is gone; the owner checks the tenant
 * (A6).
 */
export async function traceOf(
  { ask }: { readonly ask: AskOwner },
  call: CallOf<TracedRoute>,
  kind: LaneKind,
  deadlineMs: number,
): Promise<Traced> {
  const question = {
    type: 'container.trace',
    tenant: tenantOf(call),
    id: call.params.id,
    ...call.origin,
  } as const;
  const outcome = await ask(kind, question, deadlineMs);
  if (!succeeded(outcome)) return { ok: false, outcome };
  return { ok: true, trace: decodeAnswer('container.trace', outcome.body).data };
}

/** True if the request wants an answer now, not a stream. */
export const wantsAnswer = ({ query, exchange }: CallOf<ListRoute | 'container.stats'>): boolean =>
  !query.follow || exchange.head.method === 'HEAD';

/** Routes that list a part of the past, or follow it. */
type ListRoute = 'container.logs' | 'container.events' | 'event.list';

/** A part of the past, in the order in which it is read. */
export interface Past {
  readonly order: Order;
  /** Lists in the other order than that in which it reads. */
  readonly isReversed: boolean;
  /** Times in milliseconds. */
  readonly sinceMs: number | undefined;
  readonly untilMs: number | undefined;
}

/**
 * The part of the past that a list asks for.
 * @param filters the filters of this route, by their names
 * @returns `undefined` for the newest, of every kind
 */
export function pastOf(
  { query }: CallOf<ListRoute | 'log.list'>,
  filters: Readonly<Record<string, unknown>>,
): Past | { readonly faults: FieldErrors } | undefined {
  const { since, until, order, cursor } = query;
  const follow = 'follow' in query && query.follow;
  const given = Object.entries({ ...filters, since, until, order, cursor }).filter(([, value]) => value !== undefined);
  if (given.length === 0) return undefined;
  if (follow) return { faults: Object.fromEntries(given.map(([name]) => [name, ['can not be used with `follow`']])) };
  const { startMs: sinceMs, endMs: untilMs, faults } = periodIn(['since', since], ['until', until]);
  if (Object.keys(faults).length > 0) return { faults };
  return { order: order ?? 'desc', isReversed: order === undefined, sinceMs, untilMs };
}

/** A list read from a stream; 503 while the stream's server or an owner is away. */
export async function readNow(
  { log }: { readonly log: Log },
  call: Call,
  read: () => Promise<Result>,
): Promise<Handled> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof AskError) return error.outcome;
    log.warn('stream_unreadable', { requestId: call.requestId, error });
    return failure('unavailable');
  }
}

/**
 * Streams with one of the tenant's permits. `show` runs once the stream has it, not for HEAD.
 */
export async function follow(
  { streams }: { readonly streams: Pick<StreamHost, 'withPermit' | 'follow'> },
  call: Call,
  doorbell: Bell,
  show: () => Promise<Showing>,
): Promise<Handled> {
  const { identity, exchange } = call;
  if (identity === undefined) return failure('unauthenticated');
  if (exchange.head.method === 'HEAD') return { code: 'ok', body: '', headers: sseHeaders };
  return streams.withPermit<Handled>(guestOf(call), async () => {
    await streams.follow({ exchange, requestId: call.requestId, identity, doorbell, show });
    return 'streamed';
  });
}

export const guestOf = (call: Call): Guest => ({
  tenant: tenantOf(call),
  client: call.client,
  route: call.route,
  releasePermit: call.releasePermit,
});
