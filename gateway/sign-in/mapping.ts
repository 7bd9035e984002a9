/** Maps an identity provider's claims about a person to tenants and scopes, by rules. Pure. */
import { isTenantId, type TenantId } from '../../schemas/ids.ts';
import { isOfOperator } from '../auth/scopes.ts';

/** Values of one claim that rules look at. */
const signInClaimValues = 1000;

export type ProviderClaims = Readonly<Record<string, unknown>>;

interface ForAll {
  readonly claim: string;
  readonly scopes: readonly string[];
  /**
   * True if sessions of a command line get these scopes. `undefined` gives them all but those of
   * the operator.
   */
  readonly device: boolean | undefined;
}

export type Rule =
  /** People with this value among those of the claim are in this tenant. */
  | (ForAll & { readonly by: 'value'; readonly value: string; readonly tenant: TenantId })
  /** The values of the claim are names of tenants. */
  | (ForAll & { readonly by: 'name' });

/** A tenant that a person may act for. */
export interface Grant {
  readonly tenant: TenantId;
  /** None: everything of the tenant. */
  readonly scopes: readonly string[];
}

/** People type addresses into forms; only a proven one counts (OpenID Connect Core 5.1). */
const proofs: Readonly<Record<string, string>> = { email: 'email_verified', phone_number: 'phone_number_verified' };

function valuesOf(claims: ProviderClaims, claim: string): readonly string[] {
  const proof = proofs[claim];
  if (proof !== undefined && claims[proof] !== true) return [];
  const given: unknown = Object.hasOwn(claims, claim) ? claims[claim] : undefined;
  const values: readonly unknown[] = Array.isArray(given) ? given.slice(0, signInClaimValues) : [given];
  return values.filter((value) => typeof value === 'string');
}

/**
 * The client that begins a sign-in by device gets its session, and may have sent its link to
 * somebody else (RFC 8628 5.4). So it has no scopes of the operator, unless the rule says that it
 * may.
 */
function scopesFor(by: SignInWay, { scopes, device }: Rule): readonly string[] {
  if (by === 'browser' || device === true) return scopes;
  return device === false ? [] : scopes.filter((scope) => !isOfOperator(scope));
}

function grantsOfRule(rule: Rule, claims: ProviderClaims, by: SignInWay): Grant[] {
  const scopes = scopesFor(by, rule);
  // A grant without scopes would be one of everything.
  if (scopes.length === 0) return [];
  const values = valuesOf(claims, rule.claim);
  if (rule.by === 'name') return values.filter(isTenantId).map((tenant) => ({ tenant, scopes }));
  return values.includes(rule.value) ? [{ tenant: rule.tenant, scopes }] : [];
}

export type SignInWay = 'browser' | 'device';

/** The tenants of a person, by name; scopes of several rules for one tenant add up. */
export function grantsOf(rules: readonly Rule[], claims: ProviderClaims, by: SignInWay): readonly Grant[] {
  const scopes = new Map<TenantId, Set<string>>();
  for (const grant of rules.flatMap((rule) => grantsOfRule(rule, claims, by))) {
    scopes.set(grant.tenant, new Set([...(scopes.get(grant.tenant) ?? []), ...grant.scopes]));
  }
  return [...scopes]
    .map(([tenant, words]) => ({ tenant, scopes: [...words] }))
    .sort((one, other) => (one.tenant < other.tenant ? -1 : 1));
}

/** True if a rule looks at a claim that is missing. */
export const lacksClaims = (rules: readonly Rule[], claims: ProviderClaims): boolean =>
  rules.some(({ claim }) => !Object.hasOwn(claims, claim));
