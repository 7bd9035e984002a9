/** Decides which routes a token's scopes open. Pure. */
import type { Route } from '../../schemas/routes.ts';
import { tenantScopes, type Scope } from '../../schemas/scopes.ts';

/** The scope that opens all of the operator API, and the API of the token's tenant. */
const everything = 'operator';
const networkPrefix = 'network:';

/** Matches a misspelt scope, too: a token with one was not meant for the tenant's API. */
export const isOfOperator = (word: string): boolean =>
  word === everything || word.startsWith('operator:') || word.startsWith(networkPrefix);

const isOfTenant = (word: string): boolean => tenantScopes.some((known) => known === word);

/** The words of a token's `scope` that concern this API. */
export const scopesOf = (scope: string | undefined): readonly string[] =>
  scope === undefined ? [] : scope.split(' ').filter((word) => isOfTenant(word) || isOfOperator(word));

/**
 * The first of the wanted scopes that a token may not pass on; undefined if it may pass on all. One
 * without scopes opens everything of its tenant, and so may pass on all scopes of a tenant.
 */
export function lackAmong(scopes: readonly string[], wanted: readonly string[]): string | undefined {
  if (scopes.includes(everything)) return undefined;
  return wanted.find((scope) => !scopes.includes(scope) && (scopes.length > 0 || isOfOperator(scope)));
}

const wordOf = (scope: Scope, params: Readonly<Record<string, string>>): string =>
  scope === networkPrefix ? networkPrefix + (params['network'] ?? '') : scope;

/**
 * The scope that a token lacks to call a route; undefined if it lacks nothing. A token without
 * scopes opens every route of its tenant. One that has any opens only what they name: a VPN
 * server's token must not declare containers.
 */
export function lackOf(
  scopes: readonly string[],
  route: Pick<Route, 'access' | 'scopes'>,
  params: Readonly<Record<string, string>>,
): string | undefined {
  if (scopes.includes(everything)) return undefined;
  if (scopes.length === 0 && route.access !== 'operator') return undefined;
  const [first = everything, ...others] = (route.scopes ?? []).map((scope) => wordOf(scope, params));
  return [first, ...others].some((word) => scopes.includes(word)) ? undefined : first;
}
