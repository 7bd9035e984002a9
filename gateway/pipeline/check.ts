/** Whether path, query and body are valid, and whether the caller may make the request. */
import { Compile } from 'typebox/compile';
import type { TSchema } from 'typebox';
import { isConditional, pathParameters, type Route } from '../../schemas/routes.ts';
import { causeOf, isAudited } from '../audit/cause.ts';
import type { Admission } from '../auth/gate.ts';
import { findMissingScope } from '../auth/scopes.ts';
import type { Call } from '../call.ts';
import { conditionsIn } from '../http/conditional.ts';
import { forbidden, notFound, nothingToMatch } from '../http/refusals.ts';
import { invalid, missingScope, type Result } from '../http/respond.ts';
import type { Validated } from '../validation/faults.ts';
import type { AppRoute } from './app-route.ts';
import type { Checked, RequestContext, Step } from './request.ts';

const parameterChecks = new Map(
  Object.entries(pathParameters).map(([name, schema]) => [name, Compile(schema as TSchema)] as const),
);

/**
 * False if a path parameter has the wrong form: then the path names nothing, and the answer is 404,
 * whatever else is wrong.
 */
export function paramsCanBe(params: Readonly<Record<string, string>>): boolean {
  for (const name in params) if (parameterChecks.get(name)?.Check(params[name]) === false) return false;
  return true;
}

export function check(route: AppRoute, queryText: string, body: unknown): Checked {
  const query = route.readQuery(queryText);
  const valid: Validated<unknown> = route.validateBody?.(body) ?? { ok: true, value: undefined };
  if (query.ok && valid.ok) {
    const warnings = [query.warning, valid.warning].filter((text) => text !== undefined);
    const warning = warnings.length === 0 ? undefined : warnings.join('; ');
    return { ok: true, query: query.value, body: valid.value, warning };
  }
  return { ok: false, faults: { ...(query.ok ? {} : query.faults), ...(valid.ok ? {} : valid.faults) } };
}

/** The refusal of a caller who may not call the route; undefined for one who may. */
export function refusalOf(
  { identity, crossSite, isOfOurs }: Extract<Admission, { readonly kind: 'admitted' }>,
  route: Pick<Route, 'access' | 'scopes' | 'upgrades'>,
  params: Readonly<Record<string, string>>,
): Result | undefined {
  if (crossSite) return forbidden;
  // A handshake is a GET that acts, and browsers let every page make one.
  if (route.upgrades === true && !isOfOurs) return forbidden;
  const missing = findMissingScope(identity.scopes, route, params);
  return missing === undefined ? undefined : missingScope(missing);
}

/** The 404 for an invalid request about something that does not exist; undefined if it exists. */
export async function missing(route: AppRoute, call: Call): Promise<Result | undefined> {
  const found = await route.probe?.(call);
  return found !== undefined && found !== 'streamed' && found.code === 'not_found' ? found : undefined;
}

export const checkParams: Step = ({ match, params }) =>
  match?.kind === 'route' && match.params !== undefined && paramsCanBe(params) ? undefined : notFound;

/** With what owners are to know of the resource, and to say of it. */
function originOf({ route, exchange, origin }: RequestContext): Call['origin'] {
  const when = isConditional(route) ? conditionsIn(exchange.head.headers) : undefined;
  const isHeaded = route.tagged === true || route.generates === true;
  if (when === undefined && !isHeaded) return origin;
  return { ...origin, ...(when === undefined ? {} : { when }), ...(isHeaded ? { head: true } : {}) };
}

function callOf(request: RequestContext, checked: Checked): Call {
  const { exchange, route, params, caller, seat, requestId, deadlineMs, client, server } = request;
  const identity = caller?.kind === 'admitted' ? caller.identity : undefined;
  return {
    exchange,
    route: route.name,
    params,
    query: checked.ok ? checked.query : {},
    body: checked.ok ? checked.body : undefined,
    identity,
    grant: caller?.kind === 'granted' ? caller.grant : undefined,
    cause: isAudited(route) ? causeOf(route.name, params, identity, server.gate.addressOf(exchange.head)) : undefined,
    requestId,
    origin: originOf(request),
    deadlineMs,
    client,
    leaveSeat: () => seat?.leave(),
  };
}

const refusalFor = ({ caller, route, params }: RequestContext): Result | undefined =>
  caller?.kind === 'admitted' ? refusalOf(caller, route, params) : undefined;

/** A caller who may not make the request learns its faults, but not what exists. */
export const validate: Step = (request) => {
  const { route, exchange } = request;
  const checked = check(route, exchange.head.query, request.json);
  const call = callOf(request, checked);
  request.checked = checked;
  request.json = undefined;
  request.call = call;
  if (checked.ok) return undefined;
  const { faults } = checked;
  if (route.probe === undefined || refusalFor(request) !== undefined) return invalid(faults);
  return missing(route, call).then((absent) => absent ?? invalid(faults));
};

export const authorise: Step = refusalFor;

/** Owners evaluate the conditions of all other writes, in the turn that decides them. */
export const refuseMatch: Step = ({ route, valid: { call } }) =>
  route.withoutPrior === true && call.origin.when?.match !== undefined ? nothingToMatch : undefined;
