/** Which scopes of a token open which operator routes. Pure. */
import type { OperatorScope, Route } from '../../schemas/routes.ts';

/** All of the operator API, and what the token's tenant may besides. */
const everything = 'operator';
const networkPrefix = 'network:';

/**
 * Also one that opens nothing, such as a misspelt one: its token was not meant for its tenant's
 * API.
 */
const isNarrow = (word: string): boolean => word.startsWith('operator:') || word.startsWith(networkPrefix);

/** Those words of a token's `scope` that are about the operator API. */
export const powersOf = (scope: string | undefined): readonly string[] =>
  scope === undefined ? [] : scope.split(' ').filter((word) => word === everything || isNarrow(word));

const wordOf = (scope: OperatorScope, params: Readonly<Record<string, string>>): string =>
  scope === networkPrefix ? networkPrefix + (params['network'] ?? '') : scope;

/**
 * What a token lacks to call a route; undefined if it may. A token with narrow scopes alone opens
 * nothing of its tenant: a VPN server's token must not declare containers.
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
