/**
 * The steps of a request: route, credentials, body, validity, permission, handler, reply. The API
 * promises the order of refusals: 401, 413, 415, 400, 404, 422, 403.
 */
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Span, Tracer } from '../../lib/trace/tracer.ts';
import { outcomeStatus } from '../../schemas/errors.ts';
import { limits } from '../../schemas/limits.ts';
import type { Origin } from '../../schemas/wire/asks.ts';
import type { Access, Route, RouteName } from '../../schemas/routes.ts';
import type { Admission, Gate } from '../auth/gate.ts';
import type { Ride, UrlTokens } from '../auth/url-tokens.ts';
import type { Meters } from '../metrics.ts';
import { causeOf, isAudited } from '../audit/cause.ts';
import type { AuditNotes } from '../audit/notes.ts';
import { securityEventOf } from '../operator/security-events.ts';
import { AccessLog, tenantOfCaller, type Caller } from './access-log.ts';
import {
  check,
  missing,
  paramsCanBe,
  prepareRoute,
  refusalOf,
  type AppRoute,
  type Checked,
  type RouteParts,
} from './app-route.ts';
import { succeeded, type Call, type Handled } from './call.ts';
import type { BodyRefusal } from './engine/body.ts';
import type { Exchange, RequestHead } from './engine/engine.ts';
import { errorPage } from './html.ts';
import { judgeBody, parseBody, readBody } from './json-body.ts';
import { bodyRefusals, notFound, options, seatRefusals, tooLongUrl, wrongMethod } from './refusals.ts';
import { failure, invalid, replyOf, type Result } from './respond.ts';
import { createRouter, type Match, type Router } from './router.ts';
import type { Seat, Seats } from './seats.ts';

export interface DispatcherOptions extends RouteParts {
  readonly routes: readonly (Route & { readonly name: RouteName })[];
  readonly gate: Pick<Gate, 'admit' | 'limitedByFailures' | 'limitedByAddress' | 'clientOf' | 'addressOf'>;
  readonly urlTokens: Pick<UrlTokens, 'admit'>;
  readonly notes: Pick<AuditNotes, 'settle'>;
  readonly meters: Meters;
  readonly log: Log;
  /** Undefined: nothing is traced. */
  readonly tracer?: Tracer | undefined;
  readonly clock: Clock;
  readonly requestDeadlineMs: number;
  /** The beginning of every request id made here; each process has its own. */
  readonly requestIdPrefix: string;
  /** Seats of requests with credentials. */
  readonly seats: Seats;
  /** Seats of public requests without a body. */
  readonly publicSeats: Seats;
  /** Seats of public requests with a body: so slow ones do not block the other public routes. */
  readonly enrolSeats: Seats;
  /** False if the log's level drops these lines. */
  readonly accessLog: boolean;
}

/** How far a request has come: for its log line, its span and its seat. */
interface Trace {
  route: string;
  /** The request id, and where the request is traced. */
  origin: Origin;
  span: Span | undefined;
  forPeople: boolean;
  caller: Caller | undefined;
  seat: Seat | undefined;
}

const requestIdPattern = /^[A-Za-z0-9._-]{1,64}$/;

export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #router: Router<AppRoute>;
  readonly #accessLog: AccessLog | undefined;
  #requests = 0;

  constructor(dispatcherOptions: DispatcherOptions) {
    this.#options = dispatcherOptions;
    const { routes, accessLog, log } = dispatcherOptions;
    this.#router = createRouter(routes.map((route) => prepareRoute(route, dispatcherOptions)));
    this.#accessLog = accessLog ? new AccessLog(log) : undefined;
  }

  /** Answers every exchange, whatever happens; never throws. */
  readonly dispatch = (exchange: Exchange): void => void this.#answer(exchange);

  async #answer(exchange: Exchange): Promise<void> {
    const { log, clock } = this.#options;
    const startedMs = clock.monotonicMs();
    const requestId = this.#requestId(exchange.head.headers.requestId);
    const trace: Trace = {
      route: 'none',
      forPeople: false,
      origin: { rid: requestId },
      span: undefined,
      caller: undefined,
      seat: undefined,
    };
    let handled: Handled;
    try {
      handled = await this.#serve(exchange, requestId, startedMs, trace);
    } catch (error) {
      log.error('request_failed', { requestId, route: trace.route, error });
      handled = failure('internal');
    }
    try {
      this.#finish(exchange, requestId, startedMs, trace, handled);
    } catch (error) {
      log.error('reply_failed', { requestId, error });
    }
  }

  /**
   * The steps before the body: finds the route, takes a seat, and identifies the caller. Not async,
   * and neither is the next: a promise of its own for each step took a part of every request.
   */
  #serve(exchange: Exchange, requestId: string, startedMs: number, trace: Trace): Handled | Promise<Handled> {
    const { head } = exchange;
    const { gate } = this.#options;
    if (head.path.length + head.query.length > limits.urlBytes) return tooLongUrl;
    const match = this.#router.match(head.method, head.path);
    if (match.kind === 'options') return options(match.allow);
    const route = match.kind === 'route' ? match.route : undefined;
    if (route !== undefined) {
      trace.route = route.name;
      trace.forPeople = route.forPeople === true;
    }

    const access = accessOf(match);
    const bodyBoundBytes = route?.bodyBoundBytes ?? 0;
    const client = gate.clientOf(head);
    exchange.expectBody(bodyBoundBytes, client);
    if (route?.isProbe !== true) {
      this.#beginSpan(head, route, trace);
      const seat = this.#seatsFor(access, bodyBoundBytes).take(client);
      if (typeof seat === 'string') return this.#refused(seat, seatRefusals);
      trace.seat = seat;
    }
    const limited = route === undefined ? undefined : this.#limited(route, head);
    if (limited !== undefined) return limited;
    const deadlineMs = startedMs + (route?.deadlineMs ?? this.#options.requestDeadlineMs);
    const { origin } = trace;
    const request = { requestId, origin, deadlineMs, client };
    if (access === 'public') return this.#enter(exchange, match, request, trace);
    const admission = this.#admit(head, access, { route: trace.route, origin, deadlineMs });
    return admission instanceof Promise
      ? admission.then((later) => this.#enter(exchange, match, request, trace, later))
      : this.#enter(exchange, match, request, trace, admission);
  }

  /** The step after admission: the caller takes its share, or is refused. */
  #enter(
    exchange: Exchange,
    match: Exclude<Match<AppRoute>, { readonly kind: 'options' }>,
    request: Pick<Call, 'requestId' | 'origin' | 'deadlineMs' | 'client'>,
    trace: Trace,
    admission?: Admission,
  ): Handled | Promise<Handled> {
    if (admission?.kind === 'refused') return admission.result;
    trace.caller = admission;
    const refused = admission === undefined ? undefined : this.#claim(exchange, trace.seat, admission);
    if (refused !== undefined) return refused;
    if (match.kind === 'none') return notFound;
    if (match.kind === 'method') return wrongMethod(match.allow);
    return this.#handle(exchange, match, request, trace);
  }

  /** Counts the seat and the body against the tenant, too; a refusal if the tenant has no room. */
  #claim(exchange: Exchange, seat: Seat | undefined, caller: Caller): Result | undefined {
    const tenant = tenantOfCaller(caller);
    const refused = seat?.claim(tenant);
    if (refused !== undefined) return this.#refused(refused, seatRefusals);
    exchange.claimBody(tenant);
    return undefined;
  }

  /** The steps from the body on, for an admitted caller. */
  async #handle(
    exchange: Exchange,
    { route, params }: { readonly route: AppRoute; readonly params: Call['params'] },
    request: Pick<Call, 'requestId' | 'origin' | 'deadlineMs' | 'client'>,
    trace: Trace,
  ): Promise<Handled> {
    const { head } = exchange;
    const { caller } = trace;
    const misfit = route.validateBody === undefined ? undefined : judgeBody(exchange, route);
    if (misfit !== undefined) return misfit;
    const body = route.validateBody === undefined ? undefined : await readBody(exchange);
    if (typeof body === 'string') return this.#refused(body, bodyRefusals);
    const parsed = body === undefined ? undefined : parseBody(head, body);
    if (parsed !== undefined && 'code' in parsed) return parsed;
    if (!paramsCanBe(params)) return notFound;
    const checked = check(route, head.query, parsed?.value);
    const identity = caller?.kind === 'admitted' ? caller.identity : undefined;
    const call: Call = {
      exchange,
      route: route.name,
      params,
      query: checked.ok ? checked.query : {},
      body: checked.ok ? checked.body : undefined,
      identity,
      grant: caller?.kind === 'granted' ? caller.grant : undefined,
      cause: isAudited(route) ? causeOf(route.name, params, identity, this.#options.gate.addressOf(head)) : undefined,
      ...request,
      leaveSeat: () => trace.seat?.leave(),
    };
    const refusal = caller?.kind === 'admitted' ? refusalOf(caller, route, params) : undefined;
    const decided = await this.#decide(route, call, checked, refusal);
    return call.cause === undefined ? decided : this.#options.notes.settle(call, decided);
  }

  async #decide(route: AppRoute, call: Call, checked: Checked, refusal: Result | undefined): Promise<Handled> {
    if (!checked.ok) return (refusal === undefined ? await missing(route, call) : undefined) ?? invalid(checked.faults);
    if (refusal !== undefined) return refusal;
    const handled = warned(await route.handler(call), checked.warning);
    const told = securityEventOf(call, handled);
    if (told !== undefined) this.#options.log.info(told.event, told.fields);
    return handled;
  }

  #seatsFor(access: Access, bodyBoundBytes: number): Seats {
    if (access !== 'public') return this.#options.seats;
    return bodyBoundBytes === 0 ? this.#options.publicSeats : this.#options.enrolSeats;
  }

  #refused<Why extends BodyRefusal>(why: Why, results: Readonly<Record<Why, Result>>): Result {
    const { meters } = this.#options;
    if (why === 'client') meters.rateLimited('address');
    if (why === 'tenant') meters.rateLimited('tenant');
    return results[why];
  }

  /** A refusal if the client is over a limit of public routes. */
  #limited({ ownToken, publicRate }: AppRoute, head: RequestHead): Result | undefined {
    const { gate } = this.#options;
    const byFailures = ownToken === undefined ? undefined : gate.limitedByFailures(head, ownToken);
    return (byFailures ?? (publicRate === true ? gate.limitedByAddress(head) : undefined))?.result;
  }

  #admit(head: RequestHead, access: Exclude<Access, 'public'>, ride: Ride): Admission | Promise<Admission> {
    const { gate, urlTokens } = this.#options;
    return access === 'download' || access === 'pac' ? urlTokens.admit(head, access, ride) : gate.admit(head);
  }

  #beginSpan({ method, headers }: RequestHead, route: AppRoute | undefined, trace: Trace): void {
    const { tracer } = this.#options;
    if (tracer === undefined) return;
    const { rid } = trace.origin;
    const span = tracer.root(headers, {
      name: route === undefined ? method : `${method} ${route.path}`,
      kind: 'server',
      attributes: { 'http.request.method': method, 'http.route': route?.path, 'longshore.request_id': rid },
    });
    if (span === undefined) return;
    trace.span = span;
    trace.origin = { rid, trace: span.trace };
  }

  #endSpan({ span, caller }: Trace, status: number): void {
    const tenant = caller === undefined ? undefined : tenantOfCaller(caller);
    const attributes = { 'http.response.status_code': status, 'longshore.tenant': tenant };
    span?.end({ attributes, isError: status >= 500 });
  }

  #finish(exchange: Exchange, requestId: string, startedMs: number, trace: Trace, handled: Handled): void {
    const { clock, gate, meters } = this.#options;
    const { seat } = trace;
    // A reply takes memory until it is written.
    if (seat !== undefined) exchange.whenFinished(() => seat.leave());
    const streamed = handled === 'streamed';
    const status = streamed
      ? outcomeStatus[exchange.isUpgraded ? 'switching_protocols' : 'ok']
      : outcomeStatus[handled.code];
    if (!streamed) {
      const shown = trace.forPeople && !succeeded(handled) ? errorPage(handled) : handled;
      exchange.reply(replyOf(shown, requestId));
    }
    if (trace.span !== undefined) this.#endSpan(trace, status);
    const ms = clock.monotonicMs() - startedMs;
    meters.request(trace.route, status, ms / 1000, streamed || trace.route === 'container.wait');
    this.#accessLog?.write(exchange, {
      requestId,
      traceId: trace.span?.traceId,
      route: trace.route,
      caller: trace.caller,
      status,
      ms,
      address: gate.addressOf(exchange.head),
      streamed,
    });
  }

  #requestId(given: string | undefined): string {
    return given !== undefined && requestIdPattern.test(given)
      ? given
      : `${this.#options.requestIdPrefix}-${(this.#requests++).toString(36)}`;
  }
}

/** With what the client should know of its request. */
const warned = (handled: Handled, warning: string | undefined): Handled =>
  warning === undefined || handled === 'streamed'
    ? handled
    : { ...handled, headers: [...(handled.headers ?? []), 'longshore-warning', warning] };

/** Even "not found" needs credentials under the prefix of a guarded area. */
function accessOf(match: Exclude<Match<AppRoute>, { readonly kind: 'options' }>): Access {
  switch (match.kind) {
    case 'route':
      return match.route.access;
    case 'method':
      return match.access;
    case 'none':
      return match.guarded ? 'tenant' : 'public';
  }
}
