/** A route of the table with everything prepared for its requests. Pure, but for handlers. */
import { Compile } from 'typebox/compile';
import type { TSchema } from 'typebox';
import type { FieldErrors } from '../../schemas/errors.ts';
import { limits } from '../../schemas/limits.ts';
import { pathParameters, type Route, type RouteName } from '../../schemas/routes.ts';
import type { Admission } from '../auth/gate.ts';
import { lackOf } from '../auth/scopes.ts';
import type { BodyValidator, BodyValidators } from '../validation/bodies.ts';
import type { Validated } from '../validation/faults.ts';
import { queryReader, type QueryReader } from '../validation/query.ts';
import { bodyValidator } from '../validation/schema.ts';
import type { Call, Handler, Handlers } from './call.ts';
import { forbidden } from './refusals.ts';
import { missingScope, type Result } from './respond.ts';

export interface AppRoute extends Route {
  readonly name: RouteName;
  readonly handler: Handler;
  /** Looks up the resource that the path names, so that a 404 comes before a 422. */
  readonly probe: Handler | undefined;
  readonly readQuery: QueryReader;
  readonly validateBody: BodyValidator | undefined;
  /** 0 for a route without a body. */
  readonly bodyBoundBytes: number;
}

export interface RouteParts {
  readonly handlers: Handlers;
  readonly probes: Partial<Handlers>;
  readonly validators: BodyValidators;
}

export function prepareRoute(
  route: Route & { readonly name: RouteName },
  { handlers, probes, validators }: RouteParts,
): AppRoute {
  const validatorsByName: Readonly<Partial<Record<RouteName, BodyValidator>>> = validators;
  return {
    ...route,
    // Safe: the dispatcher calls them only with what `paramsCanBe` and `check` let through.
    handler: handlers[route.name] as Handler,
    probe: probes[route.name] as Handler | undefined,
    readQuery: queryReader(route),
    validateBody: validatorsByName[route.name] ?? (route.body && bodyValidator(route.body)),
    bodyBoundBytes: route.body === undefined ? 0 : (route.maxBodyBytes ?? limits.bodyDefaultBytes),
  };
}

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

/** The body and the query of a request, or their faults. */
export type Checked =
  | { readonly ok: true; readonly query: Call['query']; readonly body: unknown; readonly warning?: string | undefined }
  | { readonly ok: false; readonly faults: FieldErrors };

export function check(route: AppRoute, queryText: string, body: unknown): Checked {
  const query = route.readQuery(queryText);
  const valid: Validated<unknown> = route.validateBody?.(body) ?? { ok: true, value: undefined };
  if (query.ok && valid.ok) return { ok: true, query: query.value, body: valid.value, warning: valid.warning };
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
  const lack = lackOf(identity.scopes, route, params);
  return lack === undefined ? undefined : missingScope(lack);
}

/** The 404 for an invalid request about something that does not exist; undefined if it exists. */
export async function missing(route: AppRoute, call: Call): Promise<Result | undefined> {
  const found = await route.probe?.(call);
  return found !== undefined && found !== 'streamed' && found.code === 'not_found' ? found : undefined;
}
