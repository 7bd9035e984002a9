/** The bodies by which hosts get credentials. Pure. */
import Type from 'typebox';
import { isPublicUserKey } from '../../lib/nats/host-credentials.ts';
import { EnrolBody, RenewBody } from '../../schemas/api/host.ts';
import type { Validated } from './faults.ts';
import { bodyValidator } from './schema.ts';

/**
 * Any text passes as a join token. A text that can't be one counts as a wrong token (401), not as a
 * wrong body (422), which would reveal the form of tokens.
 */
const validateSchema = bodyValidator(
  Type.Object({ ...EnrolBody.properties, join_token: Type.String() }, { additionalProperties: false }),
);

export function validateEnrol(body: unknown): Validated<EnrolBody> {
  return withUserKey(validateSchema(body));
}

const validateRenewSchema = bodyValidator(RenewBody);

export const validateRenew = (body: unknown): Validated<RenewBody> => withUserKey(validateRenewSchema(body));

function withUserKey<Body extends { readonly public_key: string }>(valid: Validated<Body>): Validated<Body> {
  if (!valid.ok || isPublicUserKey(valid.value.public_key)) return valid;
  return { ok: false, faults: { public_key: ['must be a public user nkey; its checksum is wrong'] } };
}
