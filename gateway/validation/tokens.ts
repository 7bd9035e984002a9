/** The bodies that ask for a new token: of a peer, of a link to one, or of a tenant's program. */
import { KeyBody } from '../../schemas/api/keys/key.ts';
import { limits } from '../../schemas/limits.ts';
import { PeerTokenBody, type TokenScope } from '../../schemas/api/peer.ts';
import { PeerLinkBody } from '../../schemas/api/peer-link.ts';
import type { Validated } from './faults.ts';
import { bodyValidator } from './schema.ts';
import { parseExpiry } from './timestamp.ts';
import { minutes } from '../../schemas/limits/units.ts';

/** Allowed lead of a client's clock, for a link of the longest life. */
export const linkClockAheadMs = 1 * minutes;

export interface PeerTokenSettings {
  readonly scope: TokenScope;
  /** `null` for the default life of such tokens. */
  readonly expiresAtMs: number | null;
}

const validatePeerTokenSchema = bodyValidator(PeerTokenBody);

export function validatePeerToken(body: unknown, nowMs: number): Validated<PeerTokenSettings> {
  const valid = validatePeerTokenSchema(body);
  if (!valid.ok) return valid;
  const { scope, expires_at: text } = valid.value;
  if (text === undefined || text === null) return { ok: true, value: { scope, expiresAtMs: null } };
  const fault = (message: string): Validated<never> => ({ ok: false, faults: { expires_at: [message] } });
  const expiry = parseExpiry(text, nowMs);
  if (!expiry.ok) return fault(expiry.fault);
  if (expiry.ms > nowMs + limits.tokenTtlMaxMs) return fault('must be within three years');
  return { ok: true, value: { scope, expiresAtMs: expiry.ms } };
}

export interface PeerLinkSettings {
  /** `null` for the default life of links. */
  readonly expiresAtMs: number | null;
}

const validatePeerLinkSchema = bodyValidator(PeerLinkBody);

export function validatePeerLink(body: unknown, nowMs: number): Validated<PeerLinkSettings> {
  const valid = validatePeerLinkSchema(body);
  if (!valid.ok) return valid;
  const { expires_at: text } = valid.value;
  if (text === undefined || text === null) return { ok: true, value: { expiresAtMs: null } };
  const fault = (message: string): Validated<never> => ({ ok: false, faults: { expires_at: [message] } });
  const expiry = parseExpiry(text, nowMs);
  if (!expiry.ok) return fault(expiry.fault);
  const lastMs = nowMs + limits.linkTtlMaxMs;
  if (expiry.ms > lastMs + linkClockAheadMs) return fault('must be within seven days');
  return { ok: true, value: { expiresAtMs: Math.min(expiry.ms, lastMs) } };
}

export interface KeySettings {
  readonly name: string;
  readonly scopes: readonly string[];
  /** `null` for the longest life of a token. */
  readonly expiresAtMs: number | null;
}

const validateKeySchema = bodyValidator(KeyBody);

export function validateKey(body: unknown, nowMs: number): Validated<KeySettings> {
  const valid = validateKeySchema(body);
  if (!valid.ok) return valid;
  const { name, scopes, expires_at: text } = valid.value;
  if (text === undefined || text === null) return { ok: true, value: { name, scopes, expiresAtMs: null } };
  const expiry = parseExpiry(text, nowMs);
  if (!expiry.ok) return { ok: false, faults: { expires_at: [expiry.fault] } };
  return { ok: true, value: { name, scopes, expiresAtMs: expiry.ms } };
}
