/** Decides which operator routes a token's scopes open. Pure. */
import type { OperatorScope, Route } from '../../schemas/routes.ts';

/** The scope that opens all of the operator API, and the API of the token's tenant. */
const everything = 'operator';
const networkPrefix = 'network:';

/** Matches a misspelt scope, too: a token with one was not meant for the tenant's API. */
const isNarrow = (word: string): boolean => word.startsWith('operator:') || word.startsWith(networkPrefix);

/** The words of a token's `scope` that concern the operator API. */
export const powersOf = (scope: string | undefined): readonly string[] =>
  scope === undefined ? [] : scope.split(' ').filter((word) => word === everything || isNarrow(word));

const wordOf = (scope: OperatorScope, params: Readonly<Record<string, string>>): string =>
  scope === networkPrefix ? networkPrefix + (params['network'] ?? '') : scope;

/**
 * What a token lacks to call a route; undefined if it lacks nothing. A token with narrow scopes
 * opens no route of its tenant: a VPN server's token must not declare containers.
 */
export function lackOf(
  powers: readonly string[],
  { access, scopes }: Pick<Route, 'access' | 'scopes'>,
  params: Readonly<Record<string, string>>,
): { readonly scope: string } | 'tenant' | undefined {
  if (powers.includes(everything)) return undefined;
  if (access !== 'operator') return powers.length > 0 ? 'tenant' : undefined;
  const [first = everything, ...others] = (scopes ?? []).map((scope) => wordOf(scope, params));
  return [first, ...others].some((word) => powers.includes(word)) ? undefined : { scope: first };
}
