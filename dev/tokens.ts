/**
 * Issues tokens for local use and tests, with a key pair of our own in place of an identity
 * provider.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, SignJWT, type JWK } from 'jose';
import Type from 'typebox';
import { decoder } from '../lib/decode.ts';
import { writePrivateFile } from '../lib/process/private-file.ts';
import { readJsonFile } from './json-file.ts';

export const devIssuer = 'longshore-dev';
export const devAudience = 'longshore';
const algorithm = 'EdDSA';

export interface TokenClaims {
  /** If absent, the token has no tenant; tests check that it is refused. */
  readonly tenant?: string;
  readonly subject: string;
  /** `operator` gives access to the operator API. */
  readonly scope?: string;
  readonly issuer?: string;
  readonly audience?: string;
  /** Counted from now; negative for an expired token. */
  readonly lifetimeS: number;
}

export interface TokenIssuer {
  /** The JWKS file with the public key that the gateway reads. */
  readonly jwksFile: string;
  mint(claims: TokenClaims): Promise<string>;
}

/** A private Ed25519 key (RFC 8037). */
const decodeKey = decoder(
  Type.Object({
    kty: Type.Literal('OKP'),
    crv: Type.String(),
    x: Type.String(),
    d: Type.String(),
    kid: Type.String(),
    alg: Type.String(),
    use: Type.String(),
  }),
);

/**
 * Loads the key pair from `folder`, or makes it at the first call. `nowMs` is the wall clock that
 * dates the tokens.
 */
export async function prepareTokenIssuer(folder: string, nowMs: () => number = Date.now): Promise<TokenIssuer> {
  const keyFile = join(folder, 'private.jwk');
  const jwksFile = join(folder, 'jwks.json');
  if (!existsSync(keyFile)) writePrivateFile(keyFile, JSON.stringify(await newKey()));
  const { d: secret, ...open } = readJsonFile(keyFile, decodeKey, 'delete it to make a new key');
  writePrivateFile(jwksFile, JSON.stringify({ keys: [open] }));
  const key = await importJWK({ ...open, d: secret }, algorithm);

  const mint = (claims: TokenClaims): Promise<string> => {
    const nowS = Math.floor(nowMs() / 1000);
    return new SignJWT({
      ...(claims.tenant === undefined ? {} : { tenant_id: claims.tenant }),
      ...(claims.scope === undefined ? {} : { scope: claims.scope }),
    })
      .setProtectedHeader({ alg: algorithm, kid: open.kid })
      .setIssuer(claims.issuer ?? devIssuer)
      .setAudience(claims.audience ?? devAudience)
      .setSubject(claims.subject)
      .setIssuedAt(nowS)
      .setExpirationTime(nowS + claims.lifetimeS)
      .setJti(randomUUID())
      .sign(key);
  };
  return { jwksFile, mint };
}

async function newKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
  const jwk = await exportJWK(privateKey);
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), alg: algorithm, use: 'sig' };
}

export interface DevTokens {
  readonly tenants: Readonly<Record<'demo' | 'other', { readonly token: string }>>;
  readonly operator: { readonly token: string };
}

const devLifetimeS = 30 * 24 * 3600;

/** The tokens that `npm start` writes into dev.json and profiles.json. */
export async function mintDevTokens(issuer: TokenIssuer): Promise<DevTokens> {
  const tenant = async (name: string): Promise<{ token: string }> => ({
    token: await issuer.mint({ tenant: name, subject: `${name}-user`, lifetimeS: devLifetimeS }),
  });
  return {
    tenants: { demo: await tenant('demo'), other: await tenant('other') },
    // An operator has a scope in addition to a tenant; it is not a special tenant.
    operator: {
      token: await issuer.mint({
        tenant: 'operator',
        subject: 'operator',
        scope: 'operator',
        lifetimeS: devLifetimeS,
      }),
    },
  };
}
