/** A request as its handler sees it, and what a handler is. */
import { errorStatus, outcomeStatus } from '../schemas/errors.ts';
import type { OperationId, TenantId } from '../schemas/ids.ts';
import type { Cause } from '../schemas/wire/audit.ts';
import type { Origin } from '../schemas/wire/asks.ts';
import type { Params, Query, RouteName } from '../schemas/routes.ts';
import type { Identity, TokenGrant } from './auth/claims.ts';
import type { Outcome } from '../lib/rpc/partition-client.ts';
import type { Exchange } from './http/engine/engine.ts';
import type { Result } from './http/respond.ts';
import type { Body } from './validation/bodies.ts';
import type { QueryValues } from './validation/query.ts';

/** A request of any route. */
export interface Call {
  readonly exchange: Exchange;
  readonly route: RouteName;
  readonly params: Readonly<Record<string, string>>;
  readonly query: QueryValues;
  readonly body: unknown;
  /** Undefined on public routes only. */
  readonly identity: Identity | undefined;
  /** Set if a token in the URL took the place of an identity. */
  readonly grant: TokenGrant | undefined;
  /** The request's cause in the audit; `undefined` for one that leaves no line. */
  readonly cause?: Cause | undefined;
  readonly requestId: string;
  /** Part of every ask for this request. */
  readonly origin: Origin;
  /** Of a create of a container, whose record keeps it. */
  readonly idempotencyKey?: string;
  /**
   * The request as the write that makes a secret carries it, so that its answer can be given again.
   * Absent if nobody may repeat it.
   * @param of the resource with which the answer ends, as `Once` names it
   * @param shown the secret fields of the answer; `view: null`: they are all of it
   */
  readonly keep?: (of: string, shown: object) => Call;
  /** A time of the monotonic clock. */
  readonly deadlineMs: number;
  /** Releases the request's permit: streams and waits have their own (streams/host.ts). */
  readonly releasePermit: () => void;
  /** The address or network under which limits of clients count this request. */
  readonly client: string;
}

/**
 * A request of the route `R`, or of each route of a union, with its checked path, query and body.
 */
export interface CallOf<R extends RouteName> extends Call {
  readonly params: Params<R>;
  readonly query: Query<R>;
  readonly body: Body<R>;
}

/** A result to send, or 'streamed' if the handler has used the exchange itself. */
export type Handled = Result | 'streamed';
export type Handler<C extends Call = Call> = (call: C) => Handled | Promise<Handled>;
export type HandlerOf<R extends RouteName> = Handler<CallOf<R>>;
export type Handlers = { readonly [R in RouteName]: HandlerOf<R> };

/** Gives each write of a handler an operation of its own. */
export interface Writer {
  readonly newOperationId: () => OperationId;
}

/** The parts of a write's ask: the request, an operation of its own, and its cause. */
export const written = ({ newOperationId }: Writer, { origin, cause }: Pick<Call, 'origin' | 'cause'>) => ({
  ...origin,
  op: newOperationId(),
  ...(cause === undefined ? {} : { cause }),
});

/** The tenant comes only from the token (invariant A6). */
export function tenantOf(call: Call): TenantId {
  const tenant = call.identity?.tenant ?? call.grant?.tenant;
  if (tenant === undefined) throw new Error(`${call.route}: no identity`);
  return tenant;
}

const firstErrorStatus = Math.min(...Object.values(errorStatus));
export const succeeded = ({ code }: Outcome | Result): boolean => outcomeStatus[code] < firstErrorStatus;
