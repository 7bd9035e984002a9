/**
 * A request's way: route, credentials, body, validity, permission, handler, reply. The order of
 * refusals is the contract's: 401, 413, 415, 400, 404, 422, 403.
 */
import { Compile } from 'typebox/compile';
import type { TSchema } from 'typebox';
import { DecodeError, decodeJson } from '../../lib/decode.ts';
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
import type { BodyRefusal, BodyResult } from './engine/body.ts';
import { hasMoreValues } from './engine/body-values.ts';
import type { Exchange, RequestHead } from './engine/engine.ts';
import type { Meters } from '../metrics.ts';
import { failure, invalid, missingScope, rateLimited, replyOf, type Result } from './respond.ts';
import { createRouter, type Router } from './router.ts';
import { type Seats, type Seat, type Unseated } from './seats.ts';
import type { BodyValidator, BodyValidators } from '../validation/bodies.ts';
import type { Validated } from '../validation/faults.ts';
import { queryReader, type QueryReader } from '../validation/query.ts';
import { bodyValidator } from '../validation/schema.ts';

/** A route of the table with everything that can be prepared for it. */
interface AppRoute extends Route {
  readonly name: RouteName;
  readonly handler: Handler;
  /**
   * Tells whether what the path names is there, where a fault of the request would otherwise hide
   * that it is not.
   */
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
  /** In place of the schema alone. */
  readonly validators: BodyValidators;
  readonly gate: Gate;
  readonly urlTokens: UrlTokens;
  readonly meters: Meters;
  readonly log: Log;
  readonly clock: Clock;
  readonly requestDeadlineMs: number;
  /** Begins every request id made here; another in every process. */
  readonly requestIdPrefix: string;
  /** Of requests with credentials. */
  readonly seats: Seats;
  /** Of those without, and without a body. */
  readonly publicSeats: Seats;
  /** Of those with a body: slow ones do not keep others from what is public. */
  readonly enrolSeats: Seats;
  /** False spares the work of a line that no one would see. */
  readonly accessLog: boolean;
}

const requestIdPattern = /^[A-Za-z0-9._-]{1,64}$/;
const jsonType = /^application\/json *(?:; *charset *= *"?utf-8"? *)?$/i;
const parameterChecks = new Map(
  Object.entries(pathParameters).map(([name, schema]) => [name, Compile(schema as TSchema)] as const),
);

const notFound = failure('not_found');
const forbidden = failure('forbidden');
const operatorTokenAlone = failure('forbidden', 'the scopes of this token open parts of the operator API alone');
const tooLarge = failure('too_large');
const tooManyValues = failure('too_large', `the body has more than ${limits.bodyValues} keys and items`);
const tooLate = failure('bad_request', `the body did not arrive within ${limits.bodyMs / 1000} seconds`);
const wrongType = failure('unsupported_media_type');
const tooManyPieces = failure(
  'too_large',
  `the body came in more than ${limits.bodyPieces} pieces; send it in larger chunks, or whole with a Content-Length`,
);
const seatRefusals: Readonly<Record<Unseated, Result>> = {
  full: failure('unavailable', 'too many requests are in flight'),
  client: rateLimited(1),
  tenant: rateLimited(1),
};
const unfinishedBodies = (whose: string, bytes: number): string =>
  `unfinished request bodies ${whose} fill the ${bytes / 1024 ** 2} MiB that are there for them; send fewer large bodies at a time`;
const bodyRefusals: Readonly<Record<BodyRefusal, Result>> = {
  too_large: tooLarge,
  too_many_pieces: tooManyPieces,
  too_late: tooLate,
  full: failure('unavailable', unfinishedBodies('of all clients', limits.bodiesHeldBytes)),
  client: rateLimited(1, unfinishedBodies('from this address', limits.bodiesHeldPerClientBytes)),
  tenant: rateLimited(1, unfinishedBodies('of this tenant', limits.bodiesHeldPerTenantBytes)),
};
const wrongMethod = (allow: string): Result => ({ ...failure('method_not_allowed'), headers: ['allow', allow] });
const options = (allow: string): Result => ({ code: 'no_content', body: '', headers: ['allow', allow] });

/** What of a request is known before its handler: its body and query, or their faults. */
type Checked =
  | { readonly ok: true; readonly query: Call['query']; readonly body: unknown }
  | { readonly ok: false; readonly faults: FieldErrors };

const readBody = (exchange: Exchange): Promise<BodyResult> => new Promise((resolve) => exchange.readBody(resolve));

/** A path parameter that can't name anything is a 404, whatever else is wrong. */
function paramsCanBe(params: Readonly<Record<string, string>>): boolean {
  for (const name in params) if (parameterChecks.get(name)?.Check(params[name]) === false) return false;
  return true;
}

/**
 * What is wrong with a body is known by its length and its type, before any of it has come; where
 * it has one.
 */
function judgeBody({ head, bodyBytes }: Exchange, maxBytes: number): Result | undefined {
  const { contentType } = head.headers;
  if (bodyBytes !== undefined && bodyBytes > maxBytes) return tooLarge;
  // Chunks without a type are judged when it is known whether there are any.
  const isTyped = contentType === undefined ? bodyBytes === undefined || bodyBytes === 0 : jsonType.test(contentType);
  return isTyped ? undefined : wrongType;
}

/** The JSON of a body, or why there is none. */
function parseBody(head: RequestHead, body: Uint8Array): Result | { readonly value: unknown } {
  if (head.headers.contentType === undefined && body.byteLength > 0) return wrongType;
  if (hasMoreValues(body, limits.bodyValues)) return tooManyValues;
  try {
    return { value: decodeJson(body) };
  } catch (error) {
    if (error instanceof DecodeError) return failure('bad_request', 'the body is not JSON in UTF-8');
    throw error;
  }
}

export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #router: Router<AppRoute>;
  /** A verified token is remembered, so who asks is written as JSON once for many lines. */
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
    if (head.path.length + head.query.length > limits.urlBytes) return failure('bad_request', 'the URL is too long');
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
    const identity = admission?.kind === 'admitted' ? admission.identity : undefined;
    const grant = admission?.kind === 'granted' ? admission.grant : undefined;
    trace.caller = admission?.kind === 'admitted' || admission?.kind === 'granted' ? admission : undefined;
    const tenant = identity?.tenant ?? grant?.tenant;
    if (tenant !== undefined) {
      const refused = trace.seat?.claim(tenant);
      if (refused !== undefined) return this.#refused(refused, seatRefusals);
      exchange.claimBody(tenant);
    }
    if (match.kind === 'none') return notFound;
    if (match.kind === 'method') return wrongMethod(match.allow);

    const { route, params } = match;
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
      identity,
      grant,
      requestId,
      deadlineMs,
      leaveSeat: () => trace.seat?.leave(),
      client,
    };
    const refusal = admission?.kind === 'admitted' ? refusalOf(admission, route, params) : undefined;
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

  /** Of a route that anybody may ask, what one address may. */
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
    // Its reply takes memory until it is written.
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

/** What is known of a request, as far as it came: for its log line, and its seat. */
interface Trace {
  route: string;
  caller: Caller | undefined;
  seat: Seat | undefined;
}

type Caller = Exclude<Admission, { readonly kind: 'refused' }>;

/** Who asks, and with which token; never the token itself. */
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

/** Why a known caller may not do this; undefined where it may. */
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

/** A 404 comes before a 422: of a faulty request for what is not there, the latter is said. */
async function missing(route: AppRoute, call: Call): Promise<Result | undefined> {
  const found = await route.probe?.(call);
  return found !== undefined && found !== 'streamed' && found.code === notThere ? found : undefined;
}
