/**
 * The keys with which the cluster signs tokens of its own (ADR 41). One of them is current; those
 * before it stay until the last token that they signed has ended.
 */
import Type, { type Static } from 'typebox';
import { nullable } from '../nullable.ts';
import type { Sealed } from '../../records/sealed.ts';

/** `iss` and `aud` of the tokens that the cluster signs. */
export const ownIssuer = 'longshore';

/** The partition that keeps the signing keys of the whole cluster. */
export const signingPartition = 0;

/**
 * Ed25519. The public key is that of the sealed private one, so nobody without the vault adds one.
 */
export interface SigningKeyRecord {
  readonly kind: 'signing_key';
  readonly id: string;
  /** The private key, PKCS#8 in DER. */
  readonly sealed: Sealed;
  readonly insertedAtMs: number;
  /** Expiry of the last token that it may have signed; null for the current key. */
  readonly untilMs: number | null;
}

/** For operators. */
export const SigningKeyView = Type.Object(
  {
    id: Type.String({ description: '`kid` of the tokens that this key signs.' }),
    current: Type.Boolean({ description: 'True for the key that signs new tokens.' }),
    inserted_at: nullable(
      Type.String({ format: 'date-time', description: 'Null if the record of the key is damaged.' }),
    ),
    expires_at: nullable(
      Type.String({
        format: 'date-time',
        description: 'When the key stops being accepted. Null for the current key, and for a damaged one.',
      }),
    ),
  },
  { additionalProperties: false },
);
export type SigningKeyView = Static<typeof SigningKeyView>;

/** `GET /.well-known/jwks.json`: RFC 7517 with Ed25519 keys (RFC 8037). */
export const KeySet = Type.Object(
  {
    keys: Type.Array(
      Type.Object(
        {
          kty: Type.Literal('OKP'),
          crv: Type.Literal('Ed25519'),
          alg: Type.Literal('EdDSA'),
          use: Type.Literal('sig'),
          kid: Type.String(),
          x: Type.String(),
        },
        { additionalProperties: false },
      ),
    ),
  },
  { additionalProperties: false },
);
export type KeySet = Static<typeof KeySet>;
