/**
 * A request's way: route, credentials, body, validity, permission, handler, reply. The order of
 * refusals is the contract's: 401, 413, 415, 400, 404, 422, 403.
 */
import { Compile } from 'typebox/compile';
import type { TSchema } from 'typebox';
import type { Clock } from '../../lib/clock.ts';
import type { Fields, Log } from '../../lib/log.ts';
import { outcomeStatus, type FieldErrors, type OutcomeCode } from '../../schemas/errors.ts';
import { limits } from '../../schemas/limits.ts';
import { pathParameters, type Access, type Route, type RouteName } from '../../schemas/routes.ts';
import { auditOf } from '../operator/audit.ts';
import type { Identity } from '../auth/claims.ts';
import type { Admission, Gate } from '../auth/gate.ts';
import { lackOf } from '../auth/scopes.ts';
import type { Ride, UrlTokens } from '../auth/url-tokens.ts';
import { shortHash } from '../auth/verifier.ts';
import type { Call, Handled, Handler, TokenGrant } from './call.ts';
import type { BodyRefusal } from './engine/body.ts';
import type { Exchange, RequestHead } from './engine/engine.ts';
import type { Meters } from '../metrics.ts';
import { judgeBody, parseBody, readBody } from './json-body.ts';
import {
  bodyRefusals,
  forbidden,
  notFound,
  operatorTokenAlone,
  options,
  seatRefusals,
  tooLongUrl,
  wrongMethod,
} from './refusals.ts';
import { failure, invalid, missingScope, replyOf, type Result } from './respond.ts';
import { createRouter, type Router } from './router.ts';
import type { Seat, Seats } from './seats.ts';
import type { BodyValidator, BodyValidators } from '../validation/bodies.ts';
import type { Validated } from '../validation/faults.ts';
import { queryReader, type QueryReader } from '../validation/query.ts';
import { bodyValidator } from '../validation/schema.ts';

/** A route of the table, with everything prepared for it. */
interface AppRoute extends Route {
  readonly name: RouteName;
  readonly handler: Handler;
  /** Looks up what the path names, so that a 404 comes before a 422. */
  readonly probe: Handler | undefined;
  readonly readQuery: QueryReader;
  readonly validateBody: BodyValidator | undefined;
  /** 0 where it has none. */
  readonly bodyBoundBytes: number;
}

export interface DispatcherOptions {
  readonly routes: readonly (Route & { readonly name: RouteName })[];
  readonly handlers: Readonly<Record<RouteName, Handler>>;
  readonly probes: Readonly<Partial<Record<RouteName, Handler>>>;
  /** Of routes whose bodies need more than their schema. */
  readonly validators: BodyValidators;
  readonly gate: Gate;
  readonly urlTokens: UrlTokens;
  readonly meters: Meters;
  readonly log: Log;
  readonly clock: Clock;
  readonly requestDeadlineMs: number;
  /** The beginning of every request id made here; each process has its own. */
  readonly requestIdPrefix: string;
  /** Of requests with credentials. */
  readonly seats: Seats;
  /** Of public requests without a body. */
  readonly publicSeats: Seats;
  /** Of public requests with a body: slow ones do not block the other public routes. */
  readonly enrolSeats: Seats;
  /** False where the log's level drops these lines. */
  readonly accessLog: boolean;
}

const requestIdPattern = /^[A-Za-z0-9._-]{1,64}$/;
const parameterChecks = new Map(
  Object.entries(pathParameters).map(([name, schema]) => [name, Compile(schema as TSchema)] as const),
);

/** The body and the query of a request, or their faults. */
type Checked =
  | { readonly ok: true; readonly query: Call['query']; readonly body: unknown }
  | { readonly ok: false; readonly faults: FieldErrors };

/** A path parameter of the wrong form names nothing: 404, whatever else is wrong. */
function paramsCanBe(params: Readonly<Record<string, string>>): boolean {
  for (const name in params) if (parameterChecks.get(name)?.Check(params[name]) === false) return false;
  return true;
}

export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #router: Router<AppRoute>;
  /** A verified token is cached, so its caller's fields are written as JSON once for many lines. */
  readonly #logs = new WeakMap<Identity | TokenGrant, Log>();
  #requests = 0;

  constructor(dispatcherOptions: DispatcherOptions) {
    this.#options = dispatcherOptions;
    const { routes, handlers, probes, validators } = dispatcherOptions;
    const prepared = routes.map((route): AppRoute => ({
      ...route,
      handler: handlers[route.name],
      probe: probes[route.name],
      readQuery: queryReader(route),
      validateBody: validators[route.name] ?? (route.body === undefined ? undefined : bodyValidator(route.body)),
      bodyBoundBytes: route.body === undefined ? 0 : (route.maxBodyBytes ?? limits.bodyDefaultBytes),
    }));
    this.#router = createRouter(prepared);
  }

  /** Answers every exchange, whatever happens; never throws. */
  readonly dispatch = (exchange: Exchange): void => void this.#answer(exchange);

  async #answer(exchange: Exchange): Promise<void> {
    const { log, clock } = this.#options;
    const startedMs = clock.monotonicMs();
    const requestId = this.#requestId(exchange.head.headers.requestId);
    const trace: Trace = { route: 'none', caller: undefined, seat: undefined };
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

  async #serve(exchange: Exchange, requestId: string, startedMs: number, trace: Trace): Promise<Handled> {
    const { head } = exchange;
    const { gate } = this.#options;
    if (head.path.length + head.query.length > limits.urlBytes) return tooLongUrl;
    const match = this.#router.match(head.method, head.path);
    if (match.kind === 'options') return options(match.allow);
    if (match.kind === 'route') trace.route = match.route.name;

    const access = match.kind === 'none' ? (match.guarded ? 'tenant' : 'public') : accessOf(match);
    const bodyBoundBytes = match.kind === 'route' ? match.route.bodyBoundBytes : 0;
    const client = gate.clientOf(head);
    exchange.expectBody(bodyBoundBytes, client);
    if (match.kind !== 'route' || match.route.isProbe !== true) {
      const seat = this.#seatsFor(access, bodyBoundBytes).take(client);
      if (typeof seat === 'string') return this.#refused(seat, seatRefusals);
      trace.seat = seat;
    }
    const ownDeadlineMs = match.kind === 'route' ? match.route.deadlineMs : undefined;
    const deadlineMs = startedMs + (ownDeadlineMs ?? this.#options.requestDeadlineMs);
    const ride = { route: trace.route, requestId, deadlineMs };
    const limited = match.kind === 'route' ? this.#limited(match.route, head) : undefined;
    if (limited !== undefined) return limited;
    const admitting = access === 'public' ? undefined : this.#admit(head, access, ride);
    const admission = admitting instanceof Promise ? await admitting : admitting;
    if (admission?.kind === 'refused') return admission.result;
    trace.caller = admission;
    const tenant = admission === undefined ? undefined : tenantOf(admission);
    if (tenant !== undefined) {
      const refused = trace.seat?.claim(tenant);
      if (refused !== undefined) return this.#refused(refused, seatRefusals);
      exchange.claimBody(tenant);
    }
    if (match.kind === 'none') return notFound;
    if (match.kind === 'method') return wrongMethod(match.allow);

    return this.#handle(exchange, match, { requestId, deadlineMs, client }, trace);
  }

  /** From the body on: what an admitted caller asks of a route. */
  async #handle(
    exchange: Exchange,
    { route, params }: { readonly route: AppRoute; readonly params: Call['params'] },
    request: Pick<Call, 'requestId' | 'deadlineMs' | 'client'>,
    trace: Trace,
  ): Promise<Handled> {
    const { head } = exchange;
    const { caller } = trace;
    const misfit = route.validateBody === undefined ? undefined : judgeBody(exchange, route.bodyBoundBytes);
    if (misfit !== undefined) return misfit;
    const body = route.validateBody === undefined ? undefined : await readBody(exchange);
    if (typeof body === 'string') return this.#refused(body, bodyRefusals);
    const parsed = body === undefined ? undefined : parseBody(head, body);
    if (parsed !== undefined && 'code' in parsed) return parsed;
    if (!paramsCanBe(params)) return notFound;
    const checked = check(route, head, parsed?.value);
    const call: Call = {
      exchange,
      route: route.name,
      params,
      query: checked.ok ? checked.query : {},
      body: checked.ok ? checked.body : undefined,
      identity: caller?.kind === 'admitted' ? caller.identity : undefined,
      grant: caller?.kind === 'granted' ? caller.grant : undefined,
      ...request,
      leaveSeat: () => trace.seat?.leave(),
    };
    const refusal = caller?.kind === 'admitted' ? refusalOf(caller, route, params) : undefined;
    if (!checked.ok) return (refusal === undefined ? await missing(route, call) : undefined) ?? invalid(checked.faults);
    if (refusal !== undefined) return refusal;
    const handled = await route.handler(call);
    const audit = auditOf(call, handled);
    if (audit !== undefined) this.#options.log.info(audit.event, audit.fields);
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

  /** The limits of an address, on public routes. */
  #limited({ ownToken, publicRate }: AppRoute, head: RequestHead): Result | undefined {
    const { gate } = this.#options;
    const byFailures = ownToken === undefined ? undefined : gate.limitedByFailures(head, ownToken);
    return (byFailures ?? (publicRate === true ? gate.limitedByAddress(head) : undefined))?.result;
  }

  #admit(head: RequestHead, access: Exclude<Access, 'public'>, ride: Ride): Admission | Promise<Admission> {
    const { gate, urlTokens } = this.#options;
    return access === 'download' || access === 'pac' ? urlTokens.admit(head, access, ride) : gate.admit(head);
  }

  #finish(exchange: Exchange, requestId: string, startedMs: number, trace: Trace, handled: Handled): void {
    const { clock, gate, meters, accessLog } = this.#options;
    const { seat } = trace;
    // A reply takes memory until it is written.
    if (seat !== undefined) exchange.whenFinished(() => seat.leave());
    const streamed = handled === 'streamed';
    const status = streamed ? 200 : outcomeStatus[handled.code];
    if (!streamed) exchange.reply(replyOf(handled, requestId));
    const ms = clock.monotonicMs() - startedMs;
    meters.request(trace.route, status, ms / 1000, streamed || trace.route === 'container.wait');
    if (!accessLog) return;
    this.#logOf(trace.caller).info('request', {
      requestId,
      method: exchange.head.method,
      route: trace.route,
      status,
      ms: Math.round(ms * 100) / 100,
      address: gate.addressOf(exchange.head),
      streamed: streamed || undefined,
      aborted: exchange.aborted || undefined,
    });
  }

  /** A log whose lines say who asks. */
  #logOf(caller: Caller | undefined): Log {
    const { log } = this.#options;
    if (caller === undefined) return log;
    const who = caller.kind === 'admitted' ? caller.identity : caller.grant;
    const known = this.#logs.get(who);
    if (known !== undefined) return known;
    const own = log.child(callerFields(caller));
    this.#logs.set(who, own);
    return own;
  }

  #requestId(given: string | undefined): string {
    return given !== undefined && requestIdPattern.test(given)
      ? given
      : `${this.#options.requestIdPrefix}-${(this.#requests++).toString(36)}`;
  }
}

/** How far a request has come: for its log line and its seat. */
interface Trace {
  route: string;
  caller: Caller | undefined;
  seat: Seat | undefined;
}

type Caller = Exclude<Admission, { readonly kind: 'refused' }>;

const tenantOf = (caller: Caller) => (caller.kind === 'admitted' ? caller.identity.tenant : caller.grant.tenant);

/** The caller and the name of its token; never the token itself. */
function callerFields(caller: Caller): Fields {
  switch (caller.kind) {
    case 'admitted': {
      const { tenant, subject, tokenName } = caller.identity;
      return { tenant, subject, token: tokenName };
    }
    case 'granted': {
      const { tenant, peer, tokenHash } = caller.grant;
      return { tenant, peer, token: shortHash(tokenHash) };
    }
  }
}

const accessOf = (
  match: { readonly kind: 'route'; readonly route: AppRoute } | { readonly access: Route['access'] },
) => ('route' in match ? match.route.access : match.access);

function check(route: AppRoute, head: RequestHead, body: unknown): Checked {
  const query = route.readQuery(head.query);
  const valid: Validated<unknown> = route.validateBody?.(body) ?? { ok: true, value: undefined };
  if (query.ok && valid.ok) return { ok: true, query: query.value, body: valid.value };
  return { ok: false, faults: { ...(query.ok ? {} : query.faults), ...(valid.ok ? {} : valid.faults) } };
}

/** The refusal of a caller who lacks the right; undefined where it has it. */
function refusalOf(
  { identity, crossSite }: Extract<Admission, { readonly kind: 'admitted' }>,
  route: AppRoute,
  params: Readonly<Record<string, string>>,
): Result | undefined {
  if (crossSite) return forbidden;
  const lack = lackOf(identity.powers, route, params);
  return lack === undefined ? undefined : lack === 'tenant' ? operatorTokenAlone : missingScope(lack.scope);
}

const notThere: OutcomeCode = 'not_found';

/** A 404 comes before a 422: the reply to a faulty request for what does not exist. */
async function missing(route: AppRoute, call: Call): Promise<Result | undefined> {
  const found = await route.probe?.(call);
  return found !== undefined && found !== 'streamed' && found.code === notThere ? found : undefined;
}
