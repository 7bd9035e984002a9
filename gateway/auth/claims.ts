/**
 * The claims of a token, and the checks that need no key. Pure. A refusal here is a 401, never a
 * 503, whether or not the keys are available.
 */
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import type { PeerGrant } from '../../schemas/api/peer.ts';
import { isTenantId, type TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { isOfOperator, scopesOf, type ScopeRules } from './scopes.ts';

export const algorithms = ['EdDSA', 'ES256', 'RS256'] as const;
export type Algorithm = (typeof algorithms)[number];

/** The names of an algorithm in a token or a key: RFC 9864 has another one for EdDSA. */
export const namesOf = (algorithm: Algorithm): readonly string[] =>
  algorithm === 'EdDSA' ? ['EdDSA', 'Ed25519'] : [algorithm];

/** An accepted issuer, and the rules for its tokens. */
export interface Issuer {
  readonly issuer: string;
  readonly audience: string;
  readonly algorithms: readonly Algorithm[];
  readonly tenantClaim: string;
  /** Tenants that its tokens may name: names, or prefixes that end in `*`. */
  readonly tenants: readonly string[];
  /** True if its tokens may have scopes of the operator API. */
  readonly operators: boolean;
  readonly scopes: ScopeRules;
}

/** The caller of a request. An operator has scopes, not a tenant of its own. */
export interface Identity {
  readonly tenant: TenantId;
  readonly subject: string;
  /** The words that limit the token; with none, everything of the tenant is open. */
  readonly scopes: readonly string[];
  readonly tokenId: string | undefined;
  /** Name of the token in the log: its `jti`, or the key and the beginning of the token's hash. */
  readonly tokenName: string;
  /** 0 for a token without `iat`: every matching revocation covers it. */
  readonly issuedAtS: number;
  readonly expiresAtS: number;
}

/**
 * The grant of a token in a URL when the request arrived, and the token's hash, by which actors
 * know it.
 */
export interface TokenGrant extends PeerGrant {
  readonly tokenHash: string;
}

const Header = Compile(
  Type.Object({
    alg: Type.String(),
    kid: Type.String({ minLength: 1, maxLength: 256 }),
    typ: Type.Optional(Type.String()),
  }),
);
/**
 * RFC 8725 section 3.11: an issuer signs more than access tokens with the same key, such as the
 * news that a session has ended (`logout+jwt`), with the same subject.
 */
const accessType = /^(?:application\/)?(?:at\+)?jwt$/i;
const Claims = Type.Object({
  iss: Type.String(),
  aud: Type.Union([Type.String(), Type.Array(Type.String())]),
  exp: Type.Number(),
  sub: Type.String({ minLength: 1, maxLength: limits.subjectChars }),
  nbf: Type.Optional(Type.Number()),
  iat: Type.Optional(Type.Number()),
  jti: Type.Optional(Type.String({ maxLength: 256 })),
});
export type Claims = Static<typeof Claims>;
const claimsCheck = Compile(Claims);

/**
 * Allowed difference between the clocks of issuer and gateway. It does not apply to `exp`, which is
 * checked on every request.
 */
export const clockToleranceS = 5;

export type Preview =
  | { readonly kind: 'refused'; readonly why: string }
  | { readonly kind: 'plausible'; readonly issuerIndex: number; readonly algorithm: Algorithm; readonly keyId: string };

const refused = (why: string): Preview => ({ kind: 'refused', why });

function decodePart(part: string): unknown {
  try {
    return JSON.parse(Buffer.from(part, 'base64url').toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}

/** Bits behind the last byte are zero, so that a token has one text, and its hash is its name. */
const isCanonical = (part: string): boolean => Buffer.from(part, 'base64url').toString('base64url') === part;

/** Looks at a token in its compact form without verifying it. */
export function preview(
  token: string,
  issuers: readonly Issuer[],
  { nowS, lifeMaxS }: { readonly nowS: number; readonly lifeMaxS: number },
): Preview {
  const [headerPart = '', claimsPart = '', signature = ''] = token.split('.', 3);
  const header = decodePart(headerPart);
  const claims = decodePart(claimsPart);
  if (!Header.Check(header)) return refused('header');
  if ('crit' in header) return refused('crit');
  if (header.typ !== undefined && !accessType.test(header.typ)) return refused('type');
  if (!isCanonical(signature)) return refused('encoding');
  if (!claimsCheck.Check(claims)) return refused('claims');
  const issuerIndex = issuers.findIndex(({ issuer }) => issuer === claims.iss);
  const issuer = issuers[issuerIndex];
  if (issuer === undefined) return refused('issuer');
  const algorithm = issuer.algorithms.find((known) => namesOf(known).includes(header.alg));
  if (algorithm === undefined) return refused('algorithm');
  if (![claims.aud].flat().includes(issuer.audience)) return refused('audience');
  if (claims.exp <= nowS) return refused('expired');
  if (claims.nbf !== undefined && claims.nbf > nowS + clockToleranceS) return refused('not yet valid');
  // A revocation covers tokens by their `iat` and is kept only for the longest life, so a token
  // that lives longer, or was issued in the future, is refused.
  if (claims.iat !== undefined && claims.iat > nowS + clockToleranceS) return refused('issued in the future');
  if (claims.exp - (claims.iat ?? nowS) > lifeMaxS) return refused('lives too long');
  if (scopesOf(claims, issuer.scopes) === undefined) return refused('scopes');
  if (identityOf(claims, issuer, '') === undefined) return refused('tenant');
  return { kind: 'plausible', issuerIndex, algorithm, keyId: header.kid };
}

const mayName = ({ tenants }: Issuer, tenant: string): boolean =>
  tenants.some((name) => (name.endsWith('*') ? tenant.startsWith(name.slice(0, -1)) : tenant === name));

/**
 * The identity in a token's claims. Undefined if the tenant claim is not a valid tenant (its form
 * matters, because it goes into NATS subjects), if its scopes can't be read, or if the token claims
 * more than its issuer may: a token is accepted as a whole or not at all. `unnamed`: the name of a
 * token without `jti`.
 */
export function identityOf(claims: Claims, issuer: Issuer, unnamed: string): Identity | undefined {
  const tenant: unknown = Object.hasOwn(claims, issuer.tenantClaim)
    ? (claims as Record<string, unknown>)[issuer.tenantClaim]
    : undefined;
  if (typeof tenant !== 'string' || !isTenantId(tenant) || !mayName(issuer, tenant)) return undefined;
  const scopes = scopesOf(claims, issuer.scopes);
  if (scopes === undefined) return undefined;
  if (scopes.some(isOfOperator) && !issuer.operators) return undefined;
  return {
    tenant,
    subject: claims.sub,
    scopes,
    tokenId: claims.jti,
    tokenName: claims.jti ?? unnamed,
    issuedAtS: claims.iat ?? 0,
    expiresAtS: claims.exp,
  };
}

/** The claims of a verified token; undefined if its payload has another shape. */
export const claimsOf = (payload: unknown): Claims | undefined => (claimsCheck.Check(payload) ? payload : undefined);
