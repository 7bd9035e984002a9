/**
 * Keys of a tenant for its programs (ADR 41): tokens that the cluster signs itself. The token is
 * shown once and not stored; the record is what the tenant sees of it, and by its id it is revoked.
 */
import Type, { type Static } from 'typebox';
import { KeyId, type TenantId } from '../../ids.ts';
import { limits } from '../../limits.ts';
import { keyScopePattern } from '../../scopes.ts';
import { nullable } from '../nullable.ts';

const keyNamePattern = '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$';
const KeyName = Type.String({ pattern: keyNamePattern });
const KeyScopes = Type.Array(Type.String({ pattern: keyScopePattern }), {
  minItems: 1,
  maxItems: limits.keyScopes,
  uniqueItems: true,
});

/** `POST /keys` */
export const KeyBody = Type.Object(
  {
    name: KeyName,
    scopes: KeyScopes,
    expires_at: Type.Optional(
      nullable(
        Type.String({
          format: 'date-time',
          description: 'Expiry. If absent or null, the longest life that a token may have.',
        }),
      ),
    ),
  },
  { additionalProperties: false },
);
export type KeyBody = Static<typeof KeyBody>;

const damaged = { description: 'Null if the record of the key is damaged; delete it.' };
const keyView = {
  id: KeyId,
  name: nullable(KeyName),
  scopes: nullable(KeyScopes),
  subject: nullable(Type.String({ description: 'Subject that created the key; also the `sub` of its token.' })),
  inserted_at: nullable(Type.String({ format: 'date-time', ...damaged })),
  expires_at: nullable(Type.String({ format: 'date-time' })),
  revoked: Type.Boolean({
    description: 'True if a revocation of its subject, or of the whole tenant, refuses its token.',
  }),
};
export const KeyView = Type.Object(keyView, { additionalProperties: false });
export type KeyView = Static<typeof KeyView>;

export const KeyWithToken = Type.Object(
  { ...keyView, token: Type.String({ description: 'The token; it is shown only once.' }) },
  { additionalProperties: false },
);

export interface KeyRecord {
  readonly kind: 'key';
  readonly tenant: TenantId;
  readonly id: KeyId;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly subject: string;
  /** `iat` and `exp` of its token. */
  readonly issuedAtS: number;
  readonly expiresAtS: number;
}

export const keysFull = `there are already ${limits.keysPerTenant} keys, which is the most: delete one first`;
