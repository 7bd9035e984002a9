/** A route of the table with everything prepared for its requests. Pure, but for handlers. */
import { limits } from '../../schemas/limits.ts';
import type { Route, RouteName } from '../../schemas/routes.ts';
import type { Handler, Handlers } from '../call.ts';
import type { BodyValidator, BodyValidators } from '../validation/bodies.ts';
import { queryReader, type QueryReader } from '../validation/query.ts';
import { bodyValidator } from '../validation/schema.ts';

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
    // Safe: the steps call them only with what `paramsCanBe` and `check` let through.
    handler: handlers[route.name] as Handler,
    probe: probes[route.name] as Handler | undefined,
    readQuery: queryReader(route),
    validateBody: validatorsByName[route.name] ?? (route.body && bodyValidator(route.body)),
    bodyBoundBytes: route.body === undefined ? 0 : (route.maxBodyBytes ?? limits.bodyDefaultBytes),
  };
}
