/** Decides which routes a token's scopes open. Pure. */
import type { Route } from '../../schemas/routes.ts';
import { keyScopePattern, type Scope } from '../../schemas/scopes.ts';

/** The scope that opens all of the operator API, and the API of the token's tenant. */
const everything = 'operator';
const networkPrefix = 'network:';

/** Matches a misspelt scope, too: a token with one was not meant for the tenant's API. */
export const isOfOperator = (word: string): boolean =>
  word === everything || word.startsWith('operator:') || word.startsWith(networkPrefix);

const knownScope = new RegExp(keyScopePattern);
/** Checks whether a word is a known scope. */
export const isScope = (word: string): boolean => knownScope.test(word);

/** The claim in which an issuer's tokens have their scopes, and the scopes of other programs. */
export interface ScopeRules {
  /** `undefined` stands for the claims of RFC 8693 and RFC 9068, and the usual substitutes. */
  readonly claim: string | undefined;
  readonly ignore: readonly string[];
}

const usualClaims: readonly string[] = ['scope', 'scp', 'scopes'];
/** OpenID Connect Core 5.4 and 11: what a client may learn of a person. */
const ofOpenId: ReadonlySet<string> = new Set(['openid', 'profile', 'email', 'offline_access', 'address', 'phone']);

/** Undefined for a claim that is neither a text nor a list of texts. */
function wordsOf(claim: unknown): readonly string[] | undefined {
  if (claim === undefined || claim === null) return [];
  if (typeof claim === 'string') return claim.split(' ').filter((word) => word !== '');
  return Array.isArray(claim) && claim.every((word) => typeof word === 'string') ? claim : undefined;
}

/** Stands for the words of a claim that has none: no scope, so it opens nothing. */
const noWord = '';

/**
 * The words that limit a token, also those that open nothing: the issuer wanted a limit. So it did
 * where the issuer's own claim is there and empty, as for a user without permissions. Undefined if
 * a claim of scopes can't be read.
 */
export function scopesOf(
  claims: Readonly<Record<string, unknown>>,
  { claim, ignore }: ScopeRules,
): readonly string[] | undefined {
  const scopes = new Set<string>();
  for (const name of claim === undefined ? usualClaims : [claim]) {
    const isThere = Object.hasOwn(claims, name);
    const words = wordsOf(isThere ? claims[name] : undefined);
    if (words === undefined) return undefined;
    if (isThere && name === claim && words.length === 0) scopes.add(noWord);
    for (const word of words) if (!ofOpenId.has(word) && !ignore.includes(word)) scopes.add(word);
  }
  return [...scopes];
}

/**
 * The first of the wanted scopes that a token may not pass on; undefined if it may pass on all. One
 * without scopes opens everything of its tenant, and so may pass on all scopes of a tenant.
 */
export function firstMissing(scopes: readonly string[], wanted: readonly string[]): string | undefined {
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
export function findMissingScope(
  scopes: readonly string[],
  route: Pick<Route, 'access' | 'scopes'>,
  params: Readonly<Record<string, string>>,
): string | undefined {
  if (scopes.includes(everything)) return undefined;
  if (scopes.length === 0 && route.access !== 'operator') return undefined;
  const [first = everything, ...others] = (route.scopes ?? []).map((scope) => wordOf(scope, params));
  return [first, ...others].some((word) => scopes.includes(word)) ? undefined : first;
}
