/** The body that asks for a new key. */
import { KeyBody } from '../../schemas/api/keys/key.ts';
import type { Validated } from '../validation/faults.ts';
import { bodyValidator } from '../validation/schema.ts';
import { parseExpiry } from '../validation/timestamp.ts';

export interface KeySettings {
  readonly name: string;
  readonly scopes: readonly string[];
  /** Null: as long as a token may live. */
  readonly expiresAtMs: number | null;
}

const validateSchema = bodyValidator(KeyBody);

export function validateKey(body: unknown, nowMs: number): Validated<KeySettings> {
  const valid = validateSchema(body);
  if (!valid.ok) return valid;
  const { name, scopes, expires_at: text } = valid.value;
  if (text === undefined || text === null) return { ok: true, value: { name, scopes, expiresAtMs: null } };
  const expiry = parseExpiry(text, nowMs);
  if (!expiry.ok) return { ok: false, faults: { expires_at: [expiry.fault] } };
  return { ok: true, value: { name, scopes, expiresAtMs: expiry.ms } };
}
