/**
 * Sessions of people who sign in with an identity provider (ADR 43). A session is a token of the
 * cluster's own, and stored nowhere; only its end is, as a revocation.
 */
import Type, { type Static } from 'typebox';
import { TenantId } from '../../ids.ts';
import { limits } from '../../limits.ts';

const handle = Type.String({
  minLength: 1,
  maxLength: limits.signInHandleBytes,
  description: 'Sealed state of this sign-in.',
});

/** `POST /sign-in/device` (RFC 8628) */
export const DeviceBody = Type.Object({}, { additionalProperties: false });
export const DeviceSignIn = Type.Object(
  {
    handle,
    user_code: Type.String({ description: 'Code to enter at `verification_uri`.' }),
    verification_uri: Type.String(),
    verification_uri_complete: Type.Optional(
      Type.String({
        description:
          'Page of this server that names the client, and leads to `verification_uri` with the code filled in.',
      }),
    ),
    expires_in: Type.Integer({ description: 'Lifetime of the code in seconds.' }),
    interval: Type.Integer({ description: 'Seconds to wait between two requests for the token.' }),
  },
  { additionalProperties: false },
);
export type DeviceSignIn = Static<typeof DeviceSignIn>;

/** `POST /sign-in/device/token` */
export const DeviceTokenBody = Type.Object(
  { handle, tenant: Type.Optional(TenantId) },
  { additionalProperties: false },
);

/** State of a sign-in. */
export const DeviceToken = Type.Union([
  Type.Object(
    { status: Type.Enum(['pending', 'slow_down', 'expired', 'denied']) },
    { additionalProperties: false, description: 'After `slow_down`, wait five seconds longer between two requests.' },
  ),
  Type.Object(
    { status: Type.Literal('choose'), tenants: Type.Array(TenantId), handle },
    { additionalProperties: false, description: 'Repeat the request with this handle and one of these tenants.' },
  ),
  Type.Object(
    {
      status: Type.Literal('done'),
      tenant: TenantId,
      token: Type.String(),
      expires_at: Type.String({ format: 'date-time' }),
    },
    { additionalProperties: false },
  ),
]);
export type DeviceToken = Static<typeof DeviceToken>;

/**
 * A file of a one-time link, for development. Its name is the SHA-256 of the code in the link, in
 * hexadecimal digits; who removes it first signs in.
 */
export const OneTimeLink = Type.Object({
  tenant: TenantId,
  subject: Type.String({ minLength: 1, maxLength: limits.subjectChars }),
  /** None: everything of the tenant. */
  scopes: Type.Array(Type.String()),
  untilMs: Type.Number(),
});
export type OneTimeLink = Static<typeof OneTimeLink>;
