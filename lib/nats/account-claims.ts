/**
 * Claims of a NATS account, and what revokes the credentials of its users in them. Pure, but for
 * the signature.
 */
import { createHash } from 'node:crypto';
import { fromSeed } from '@nats-io/nkeys';
import Type, { type Static } from 'typebox';
import { decoder } from '../decode.ts';

/** What this file reads; every other field goes back as it came. */
const AccountClaims = Type.Object({
  iat: Type.Number(),
  nats: Type.Object({ revocations: Type.Optional(Type.Record(Type.String(), Type.Number())) }),
});
export type AccountClaims = Readonly<Static<typeof AccountClaims>>;
const decodeClaims = decoder(AccountClaims);

/** The server that gave it has verified its signature. @throws DecodeError */
export const claimsOf = (jwt: string): AccountClaims => decodeClaims(Buffer.from(jwt.split('.')[1] ?? '', 'base64url'));

export const revocationsOf = ({ nats }: AccountClaims): Readonly<Record<string, number>> => nats.revocations ?? {};

export interface Revoking {
  /** Public key of a user, and until which second what was signed for it is refused. */
  readonly wanted: ReadonlyMap<string, number>;
  readonly nowS: number;
  /** Older ones revoke nothing that is still good. */
  readonly keptForS: number;
  /** Claims are one message: of more than these the newest count. */
  readonly most: number;
}

/**
 * What to push, where some server does not hold everything that is wanted; undefined where all of
 * them do. What any server holds is kept: another process may have pushed it. Newer than all, so
 * that every server takes it for what it has.
 */
export function nextClaims(held: readonly AccountClaims[], revoking: Revoking): AccountClaims | undefined {
  const { nowS, keptForS, most } = revoking;
  const newest = held.reduce((one, other) => (other.iat > one.iat ? other : one), held[0]!);
  const union = new Map(revoking.wanted);
  for (const claims of held) {
    for (const [key, atS] of Object.entries(revocationsOf(claims))) union.set(key, Math.max(atS, union.get(key) ?? 0));
  }
  const kept = [...union]
    .filter(([, atS]) => atS + keptForS >= nowS)
    .sort(([, one], [, other]) => other - one)
    .slice(0, most);
  const isHeld = (claims: AccountClaims): boolean => {
    const revocations = revocationsOf(claims);
    return kept.every(([key]) => (revocations[key] ?? 0) >= (revoking.wanted.get(key) ?? 0));
  };
  if (held.every(isHeld)) return undefined;
  return {
    ...newest,
    iat: Math.max(nowS, newest.iat + 1),
    nats: { ...newest.nats, revocations: Object.fromEntries(kept) },
  };
}

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** The library's own encoder takes no time of issue; two changes in a second need one. */
export function signClaims(claims: AccountClaims, operatorSeed: string): string {
  const signer = fromSeed(new TextEncoder().encode(operatorSeed));
  const issued = { ...claims, iss: signer.getPublicKey(), jti: '' };
  const jti = createHash('sha256').update(JSON.stringify(issued)).digest('hex');
  const text = `${encoded({ typ: 'JWT', alg: 'ed25519-nkey' })}.${encoded({ ...issued, jti })}`;
  return `${text}.${Buffer.from(signer.sign(new TextEncoder().encode(text))).toString('base64url')}`;
}
