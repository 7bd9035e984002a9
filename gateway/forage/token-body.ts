/** The body that asks for a new token of a peer. */
import { limits } from '../../schemas/limits.ts';
import { PeerTokenBody, type TokenScope } from '../../schemas/peer.ts';
import type { Validated } from '../create.ts';
import { bodyValidator } from '../validate.ts';
import { parseTimestamp } from '../vpn/timestamp.ts';

export interface PeerTokenSettings {
  readonly scope: TokenScope;
  /** Null: as long as such tokens usually last. */
  readonly expiresAtMs: number | null;
}

const validateSchema = bodyValidator(PeerTokenBody);

export function validatePeerToken(body: unknown, nowMs: number): Validated<PeerTokenSettings> {
  const valid = validateSchema(body);
  if (!valid.ok) return valid;
  const { scope, expires_at: text } = valid.value;
  const expiresAtMs = text === undefined || text === null ? null : parseTimestamp(text);
  const fault = (message: string): Validated<never> => ({ ok: false, faults: { expires_at: [message] } });
  if (expiresAtMs === undefined) return fault('has invalid format');
  if (expiresAtMs !== null && expiresAtMs <= nowMs) return fault('must be in the future');
  if (expiresAtMs !== null && expiresAtMs > nowMs + limits.tokenTtlMaxMs) return fault('must be within three years');
  return { ok: true, value: { scope, expiresAtMs } };
}
