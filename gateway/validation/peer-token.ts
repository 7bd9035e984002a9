/** The body that asks for a new token of a peer. */
import { limits } from '../../schemas/limits.ts';
import { PeerTokenBody, type TokenScope } from '../../schemas/api/peer.ts';
import type { Validated } from './faults.ts';
import { bodyValidator } from './schema.ts';
import { parseExpiry } from './timestamp.ts';

export interface PeerTokenSettings {
  readonly scope: TokenScope;
  /** Null: the default life of such tokens. */
  readonly expiresAtMs: number | null;
}

const validateSchema = bodyValidator(PeerTokenBody);

export function validatePeerToken(body: unknown, nowMs: number): Validated<PeerTokenSettings> {
  const valid = validateSchema(body);
  if (!valid.ok) return valid;
  const { scope, expires_at: text } = valid.value;
  if (text === undefined || text === null) return { ok: true, value: { scope, expiresAtMs: null } };
  const fault = (message: string): Validated<never> => ({ ok: false, faults: { expires_at: [message] } });
  const expiry = parseExpiry(text, nowMs);
  if (!expiry.ok) return fault(expiry.fault);
  if (expiry.ms > nowMs + limits.tokenTtlMaxMs) return fault('must be within three years');
  return { ok: true, value: { scope, expiresAtMs: expiry.ms } };
}
