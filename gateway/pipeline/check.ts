/** Checks of a request's path, body and query, and of its caller's scopes. */
import { Compile } from 'typebox/compile';
import type { TSchema } from 'typebox';
import { DecodeError, decodeJson } from '../../lib/decode.ts';
import { limits } from '../../schemas/limits.ts';
import { isConditional, pathParameters, type Route } from '../../schemas/routes.ts';
import { causeOf, isAudited } from '../audit/cause.ts';
import type { Admission } from '../auth/gate.ts';
import { findMissingScope } from '../auth/scopes.ts';
import type { Call } from '../call.ts';
import { conditionsIn } from '../http/conditional.ts';
import type { BodyResult } from '../http/engine/body.ts';
import type { Exchange, RequestHead } from '../http/engine/engine.ts';
import {
  bodyRefusals,
  forbidden,
  notFound,
  nothingToMatch,
  notJson,
  tooLarge,
  tooManyValues,
  wrongType,
} from '../http/refusals.ts';
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

const jsonType = /^application\/json *(?:; *charset *= *"?utf-8"? *)?$/i;
/** RFC 7396 */
const patchType = /^application\/(?:merge-patch\+)?json *(?:; *charset *= *"?utf-8"? *)?$/i;

/** Refuses a body by its headers, before any of it has arrived. */
export function judgeBody(
  { head, body: { declaredBytes } }: Pick<Exchange, 'head' | 'body'>,
  { bodyBoundBytes: maxBytes, patches }: Pick<AppRoute, 'bodyBoundBytes' | 'patches'>,
): Result | undefined {
  const { contentType } = head.headers;
  if (declaredBytes !== undefined && declaredBytes > maxBytes) return tooLarge;
  // A chunked body without a type may be empty, so `parseBody` checks it once it has arrived.
  const type = patches === true ? patchType : jsonType;
  const isTyped =
    contentType === undefined ? declaredBytes === undefined || declaredBytes === 0 : type.test(contentType);
  return isTyped ? undefined : wrongType;
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openList = 0x5b;
const openMap = 0x7b;

/**
 * True if JSON has more keys and items than a bound. Does not parse: the values that a parser makes
 * take up to a hundred times as much memory as their bytes. For text that is not JSON the count
 * means nothing; the parser refuses it. Counts commas and opening brackets: the first value of a
 * list or map follows its opening bracket, every other one a comma.
 */
export function hasMoreValues(json: Uint8Array, max: number): boolean {
  if (json.byteLength <= max) return false;
  let values = 0;
  let inString = false;
  for (let at = 0; at < json.byteLength; at++) {
    const byte = json[at];
    if (inString) {
      if (byte === backslash) at++;
      else if (byte === quote) inString = false;
    } else if (byte === quote) inString = true;
    else if ((byte === comma || byte === openList || byte === openMap) && ++values > max) return true;
  }
  return false;
}

/** The JSON of a body, or the refusal of a body that is not JSON. */
export function parseBody(head: RequestHead, body: Uint8Array): Result | { readonly value: unknown } {
  if (head.headers.contentType === undefined && body.byteLength > 0) return wrongType;
  if (hasMoreValues(body, limits.bodyValues)) return tooManyValues;
  try {
    return { value: decodeJson(body) };
  } catch (error) {
    if (error instanceof DecodeError) return notJson;
    throw error;
  }
}

function take(request: RequestContext, body: BodyResult): Result | undefined {
  if (typeof body === 'string') return request.refused(body, bodyRefusals);
  const parsed = parseBody(request.exchange.head, body);
  if ('code' in parsed) return parsed;
  request.json = parsed.value;
  return undefined;
}

export const readBody: Step = (request) => {
  const { exchange, route } = request;
  if (route.validateBody === undefined) return undefined;
  const refusal = judgeBody(exchange, route);
  if (refusal !== undefined) return refusal;
  return new Promise<BodyResult>((resolve) => exchange.body.whenKnown(resolve)).then((body) => take(request, body));
};

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

/** The refusal of a caller who may not call the route; `undefined` for one who may. */
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
  const { exchange, route, params, caller, permit, requestId, deadlineMs, client, server } = request;
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
    releasePermit: () => permit?.release(),
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
