/**
 * A request on its way through the steps. Each step reads what earlier ones have found, and adds
 * its own; nothing else is passed from one to the next.
 */
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Span, Tracer } from '../../lib/trace/tracer.ts';
import type { FieldErrors } from '../../schemas/errors.ts';
import type { Access } from '../../schemas/routes.ts';
import type { Origin } from '../../schemas/wire/asks.ts';
import type { AuditNotes } from '../audit/notes.ts';
import type { Gate } from '../auth/gate.ts';
import type { UrlTokens } from '../auth/url-tokens.ts';
import type { Call, Handled } from '../call.ts';
import type { BodyRefusal } from '../http/engine/body.ts';
import type { Exchange } from '../http/engine/engine.ts';
import type { Result } from '../http/respond.ts';
import type { Match, Router } from '../http/router.ts';
import type { Permit, Permits } from '../../lib/permits.ts';
import type { Meters } from '../metrics.ts';
import type { OnceOptions } from './once.ts';
import type { AccessLog, Caller } from './access-log.ts';
import type { AppRoute } from './app-route.ts';

/** The parts of a gateway that the steps of every request use. */
export interface Server {
  readonly router: Router<AppRoute>;
  readonly gate: Pick<
    Gate,
    'admit' | 'limitedByFailures' | 'limitedByAddress' | 'rateHeaders' | 'clientOf' | 'addressOf'
  >;
  readonly urlTokens: Pick<UrlTokens, 'admit'>;
  readonly notes: Pick<AuditNotes, 'settle'>;
  readonly meters: Meters;
  readonly log: Log;
  /** `undefined` if nothing is traced. */
  readonly tracer?: Tracer | undefined;
  readonly once: OnceOptions;
  readonly clock: Clock;
  readonly requestDeadlineMs: number;
  /**
   * Permits of requests with credentials. Streams and waits release theirs when they have another
   * one (streams/host.ts), and probes need none.
   */
  readonly permits: Permits;
  /** Permits of public requests without a body. */
  readonly publicPermits: Permits;
  /** Permits of public requests with a body: so slow ones do not block the other public routes. */
  readonly enrolPermits: Permits;
  /** Undefined if the log's level drops these lines. */
  readonly accessLog: AccessLog | undefined;
}

/**
 * One step. A result is the answer to the request, and ends its steps; `undefined` goes on with the
 * next one. A step that has nothing to wait for returns no promise.
 */
export type Step = (request: RequestContext) => Handled | undefined | Promise<Handled | undefined>;

/** The body and the query of a request, or their faults. */
export type Checked =
  | { readonly ok: true; readonly query: Call['query']; readonly body: unknown; readonly warning?: string | undefined }
  | { readonly ok: false; readonly faults: FieldErrors };

const noParams: Call['params'] = {};

export class RequestContext {
  readonly server: Server;
  readonly exchange: Exchange;
  readonly requestId: string;
  /** A time of the monotonic clock. */
  readonly startedMs: number;
  /** The request id, and where the request is traced: part of every ask for it. */
  origin: Origin;
  span: Span | undefined = undefined;
  /** The route of the path; `undefined` until `findRoute`, and for a path that is too long. */
  match: Match<AppRoute> | undefined = undefined;
  params: Call['params'] = noParams;
  access: Access = 'public';
  /** The address or network under which limits of clients count the request. */
  client = '';
  deadlineMs = 0;
  permit: Permit | undefined = undefined;
  /** Undefined on public routes, and for a caller who is not admitted. */
  caller: Caller | undefined = undefined;
  /** The JSON of the body, not yet checked. */
  json: unknown = undefined;
  checked: Checked | undefined = undefined;
  /** Undefined for a request that is refused before its path, query and body are checked. */
  call: Call | undefined = undefined;

  constructor(server: Server, exchange: Exchange, requestId: string) {
    this.server = server;
    this.exchange = exchange;
    this.requestId = requestId;
    this.startedMs = server.clock.monotonicMs();
    this.origin = { rid: requestId };
  }

  /** Undefined if the path and the method name no route. */
  get namedRoute(): AppRoute | undefined {
    return this.match?.kind === 'route' ? this.match.route : undefined;
  }

  /** For the steps that follow `findRoute`, `refusePath` and `validate`. */
  get route(): AppRoute {
    if (this.namedRoute === undefined) throw new Error('a step needs a route, and there is none');
    return this.namedRoute;
  }

  get valid(): { readonly call: Call; readonly checked: Checked } {
    const { call, checked } = this;
    if (call === undefined || checked === undefined) throw new Error('a step needs a request that was checked');
    return { call, checked };
  }

  /** The answer for a reason; a limit of a client or a tenant is counted. */
  refused<Why extends BodyRefusal>(why: Why, results: Readonly<Record<Why, Result>>): Result {
    const { meters } = this.server;
    if (why === 'client') meters.rateLimited('address');
    if (why === 'tenant') meters.rateLimited('tenant');
    return results[why];
  }
}
