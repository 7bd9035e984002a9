/**
 * Tokens that are refused although their signature is valid. The tenants' records are the truth;
 * this is a copy of what owners have reported. A revocation is never withdrawn; an entry is dropped
 * when every token that it could refuse has expired.
 */
import type { TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { wholeSeconds } from '../../schemas/quantity.ts';
import { isCovered, matchesToken, type Revocation, type RevocationBody } from '../../schemas/api/tenant.ts';
import type { Identity } from './claims.ts';
import { MiB } from '../../schemas/limits/units.ts';

/** Memory of a gateway for the revocations of all tenants. */
const revocationsHeldBytes = 256 * MiB;

/**
 * A revocation of tokens by `jti`, by `sub`, or, without either, of all tokens of the tenant. It
 * ends when every token that it refuses has expired. A token named by its `jti` may have an `iat`
 * in the future, if the clock of its issuer is ahead.
 */
export function revocationOf(
  tenant: Revocation['tenant'],
  { jti, sub, exp }: RevocationBody,
  { nowMs, tokenLifeMaxMs }: { readonly nowMs: number; readonly tokenLifeMaxMs: number },
): Revocation {
  const match: Revocation['match'] =
    jti !== undefined ? { by: 'jti', value: jti } : sub !== undefined ? { by: 'sub', value: sub } : { by: 'tenant' };
  const longestMs = nowMs + tokenLifeMaxMs + (match.by === 'jti' ? limits.issuerAheadMs : 0);
  const untilMs = match.by === 'jti' && exp !== undefined ? Math.min(longestMs, exp * 1000) : longestMs;
  return { tenant, match, issuedUntilS: wholeSeconds(nowMs), untilMs };
}

const keyOf = ({ match }: Revocation): string => (match.by === 'tenant' ? 'tenant' : `${match.by} ${match.value}`);

/** Roughly the memory of one entry without its text. */
const overheadBytes = 400;
const bytesOf = (revocation: Revocation): number => overheadBytes + 4 * keyOf(revocation).length;

export class Revocations {
  readonly #ofTenant = new Map<TenantId, Map<string, Revocation>>();
  readonly #heldBytesMax: number;
  #count = 0;
  #bytes = 0;

  constructor(heldBytesMax: number = revocationsHeldBytes) {
    this.#heldBytesMax = heldBytesMax;
  }

  count(): number {
    return this.#count;
  }

  /** False if there is no room: the caller then refuses all tokens of this tenant. */
  add(revocation: Revocation, nowMs: number): boolean {
    if (revocation.untilMs <= nowMs) return true;
    const held = this.#ofTenant.get(revocation.tenant) ?? new Map<string, Revocation>();
    const before = held.get(keyOf(revocation));
    const ofAll = held.get('tenant');
    if ([before, ofAll].some((other) => other !== undefined && isCovered(revocation, other))) return true;
    if (revocation.match.by === 'tenant') {
      for (const other of held.values()) if (isCovered(other, revocation)) this.#drop(held, other);
    }
    const isFull =
      held.size >= limits.revocationsPerTenant * 2 || this.#bytes + bytesOf(revocation) > this.#heldBytesMax;
    if (before === undefined && isFull) return false;
    if (before !== undefined) this.#drop(held, before);
    const whole = before === undefined ? revocation : union(before, revocation);
    held.set(keyOf(whole), whole);
    this.#ofTenant.set(whole.tenant, held);
    this.#count++;
    this.#bytes += bytesOf(whole);
    return true;
  }

  isRevoked(identity: Identity): boolean {
    const held = this.#ofTenant.get(identity.tenant);
    if (held === undefined) return false;
    for (const revocation of held.values()) if (matchesToken(revocation, identity)) return true;
    return false;
  }

  sweep(nowMs: number): void {
    for (const [tenant, held] of this.#ofTenant) {
      for (const revocation of held.values()) if (revocation.untilMs <= nowMs) this.#drop(held, revocation);
      if (held.size === 0) this.#ofTenant.delete(tenant);
    }
  }

  #drop(held: Map<string, Revocation>, revocation: Revocation): void {
    if (!held.delete(keyOf(revocation))) return;
    this.#count--;
    this.#bytes -= bytesOf(revocation);
  }
}

/** Merges two revocations that differ only in their times. */
const union = (one: Revocation, other: Revocation): Revocation => ({
  ...one,
  issuedUntilS: Math.max(one.issuedUntilS, other.issuedUntilS),
  untilMs: Math.max(one.untilMs, other.untilMs),
});
