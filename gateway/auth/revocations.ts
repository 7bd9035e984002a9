/**
 * Which tokens are refused although they verify. The truth is in the tenants' records; this is what was heard of it. A
 * revocation is never withdrawn, so what was heard is only added to, and forgotten when no token can meet it any more.
 */
import Type from 'typebox';
import type { TenantId } from '../../schemas/ids.ts';
import { TenantId as TenantIdSchema } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { Revocation } from '../../schemas/tenant.ts';
import { decoder } from '../../lib/decode.ts';
import type { Identity } from './claims.ts';

const RevocationMessage = Type.Object({
  tenant: TenantIdSchema,
  match: Type.Union([
    Type.Object({ by: Type.Enum(['jti', 'sub']), value: Type.String({ maxLength: 256 }) }),
    Type.Object({ by: Type.Literal('tenant') }),
  ]),
  issuedUntilS: Type.Number(),
  untilMs: Type.Number(),
});

/** One, as it is published to the other gateways. */
export const decodeRevocation: (bytes: Uint8Array) => Revocation = decoder(RevocationMessage);
/** The answer to `revocation.list`. */
export const decodeRevocations: (bytes: Uint8Array) => { data: readonly Revocation[] } = decoder(
  Type.Object({ data: Type.Array(RevocationMessage) }),
);

export type Standing = 'good' | 'revoked';

export function meets(revocation: Revocation, identity: Identity): boolean {
  if (identity.issuedAtS > revocation.issuedUntilS) return false;
  switch (revocation.match.by) {
    case 'tenant':
      return true;
    case 'jti':
      return revocation.match.value === identity.tokenId;
    case 'sub':
      return revocation.match.value === identity.subject;
  }
}

const keyOf = ({ match }: Revocation): string => (match.by === 'tenant' ? 'tenant' : `${match.by} ${match.value}`);

export class Revocations {
  readonly #ofTenant = new Map<TenantId, Map<string, Revocation>>();
  #count = 0;

  count(): number {
    return this.#count;
  }

  /** False where there is no room: then tokens that should be refused would pass, and the caller must not serve. */
  add(revocation: Revocation, nowMs: number): boolean {
    if (revocation.untilMs <= nowMs) return true;
    const held = this.#ofTenant.get(revocation.tenant) ?? new Map<string, Revocation>();
    const before = held.get(keyOf(revocation));
    if (before !== undefined && before.issuedUntilS >= revocation.issuedUntilS) return true;
    if (before === undefined && this.#count >= limits.revocationsHeld) return false;
    if (before === undefined) this.#count++;
    held.set(keyOf(revocation), revocation);
    this.#ofTenant.set(revocation.tenant, held);
    return true;
  }

  standing(identity: Identity): Standing {
    const held = this.#ofTenant.get(identity.tenant);
    if (held === undefined) return 'good';
    for (const revocation of held.values()) if (meets(revocation, identity)) return 'revoked';
    return 'good';
  }

  sweep(nowMs: number): void {
    for (const [tenant, held] of this.#ofTenant) {
      for (const [key, revocation] of held) {
        if (revocation.untilMs > nowMs) continue;
        held.delete(key);
        this.#count--;
      }
      if (held.size === 0) this.#ofTenant.delete(tenant);
    }
  }
}
