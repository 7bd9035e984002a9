/**
 * Claims of a NATS account, and how they revoke the credentials of its users. Pure, except for the
 * signature.
 */
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { fromSeed } from '@nats-io/nkeys';
import Type, { type Static } from 'typebox';
import { decoder } from '../../decode.ts';

/** The fields that this file reads; every other field stays as it is. */
const AccountClaims = Type.Object({
  iat: Type.Number(),
  /** The operator's key that signed them. */
  iss: Type.Optional(Type.String()),
  nats: Type.Object({
    revocations: Type.Optional(Type.Record(Type.String(), Type.Number())),
    /** One with a scope is an object. */
    signing_keys: Type.Optional(Type.Array(Type.Union([Type.String(), Type.Object({ key: Type.String() })]))),
  }),
});
export type AccountClaims = Readonly<Static<typeof AccountClaims>>;
const decodeClaims = decoder(AccountClaims);

/**
 * The server that sent the JWT has verified its signature.
 * @throws DecodeError
 */
export const claimsOf = (jwt: string): AccountClaims => decodeClaims(Buffer.from(jwt.split('.')[1] ?? '', 'base64url'));

export const revocationsOf = ({ nats }: AccountClaims): Readonly<Record<string, number>> => nats.revocations ?? {};

export const signingKeysOf = ({ nats }: AccountClaims): string[] =>
  (nats.signing_keys ?? []).map((each) => (typeof each === 'string' ? each : each.key));

export interface Revoking {
  /** By public key of a user: the second until which credentials issued for it are refused. */
  readonly wanted: ReadonlyMap<string, number>;
  readonly nowS: number;
  /** Older revocations have no effect: everything that they refuse has expired. */
  readonly keptForS: number;
  /** Claims are one message, so only the newest revocations are kept, up to this number. */
  readonly most: number;
  /**
   * The wanted claims of the account apart from its revocations, and the operator's keys that may
   * have signed it. If absent, its newest claims stay.
   */
  readonly account?: { readonly claims: AccountClaims; readonly issuers: ReadonlySet<string> };
}

/** The claims apart from the revocations, which other processes change. */
const fixed = ({ nats }: AccountClaims): object => ({ ...nats, revocations: undefined });

/**
 * The claims to push if some server lacks a wanted key; `undefined` if all servers have all of
 * them. Revocations that any server has stay, because another process may have pushed them. The
 * issue time is above that of all servers, so that each of them accepts the claims.
 */
export function nextClaims(held: readonly AccountClaims[], revoking: Revoking): AccountClaims | undefined {
  const { nowS, keptForS, most, account } = revoking;
  const newest = held.reduce((one, other) => (other.iat > one.iat ? other : one), held[0]!);
  const union = new Map(revoking.wanted);
  const isTrusted = ({ iss }: AccountClaims): boolean => account === undefined || account.issuers.has(iss ?? '');
  for (const claims of held.filter(isTrusted)) {
    for (const [key, atS] of Object.entries(revocationsOf(claims))) union.set(key, Math.max(atS, union.get(key) ?? 0));
  }
  const kept = [...union]
    .filter(([, atS]) => atS + keptForS >= nowS)
    .sort(([, one], [, other]) => other - one)
    .slice(0, most);
  const isHeld = (claims: AccountClaims): boolean => {
    const revocations = revocationsOf(claims);
    const isAsWanted =
      account === undefined || (isTrusted(claims) && isDeepStrictEqual(fixed(claims), fixed(account.claims)));
    return isAsWanted && kept.every(([key]) => (revocations[key] ?? 0) >= (revoking.wanted.get(key) ?? 0));
  };
  if (held.every(isHeld)) return undefined;
  const base = account?.claims ?? newest;
  return {
    ...base,
    iat: Math.max(nowS, newest.iat + 1),
    nats: { ...base.nats, revocations: Object.fromEntries(kept) },
  };
}

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/**
 * The encoder of the library cannot set the time of issue, and two changes in one second need
 * different ones.
 */
export function signClaims(claims: AccountClaims, operatorSeed: string): string {
  const signer = fromSeed(new TextEncoder().encode(operatorSeed));
  const issued = { ...claims, iss: signer.getPublicKey(), jti: '' };
  const jti = createHash('sha256').update(JSON.stringify(issued)).digest('hex');
  const text = `${encoded({ typ: 'JWT', alg: 'ed25519-nkey' })}.${encoded({ ...issued, jti })}`;
  return `${text}.${Buffer.from(signer.sign(new TextEncoder().encode(text))).toString('base64url')}`;
}
