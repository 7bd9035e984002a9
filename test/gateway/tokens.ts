/** An identity provider for tests: keys of every algorithm, and tokens right and wrong. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { SignJWT, UnsecuredJWT, exportJWK, generateKeyPair, type JWK, type CryptoKey } from 'jose';

export const testAlgorithms = ['EdDSA', 'ES256', 'RS256'] as const;
export type TestAlgorithm = (typeof testAlgorithms)[number];

export interface SigningKey {
  readonly kid: string;
  readonly algorithm: TestAlgorithm;
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
}

export async function createKey(algorithm: TestAlgorithm, kid: string = randomUUID()): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid, alg: algorithm, use: 'sig' };
  return { kid, algorithm, privateKey, jwk };
}

export interface Claims {
  readonly [claim: string]: unknown;
}

export interface TestIssuer {
  readonly name: string;
  readonly audience: string;
  readonly jwksFile: string;
  readonly keys: Readonly<Record<TestAlgorithm, SigningKey>>;
  /**
   * A good token unless `claims` or `header` say otherwise; a claim that is undefined is left out.
   */
  mint(claims?: Claims, options?: { key?: SigningKey; header?: Record<string, unknown> }): Promise<string>;
  unsecured(claims?: Claims): string;
  writeJwks(keys: readonly SigningKey[]): void;
}

export const nowS = (): number => Math.floor(Date.now() / 1000);

export async function createIssuer(folder: string, name = 'https://issuer.test'): Promise<TestIssuer> {
  mkdirSync(folder, { recursive: true });
  const audience = 'longshore';
  const jwksFile = join(folder, 'jwks.json');
  const [EdDSA, ES256, RS256] = await Promise.all(testAlgorithms.map((algorithm) => createKey(algorithm)));
  const keys = { EdDSA, ES256, RS256 } as Record<TestAlgorithm, SigningKey>;
  const writeJwks = (published: readonly SigningKey[]): void =>
    writeFileSync(jwksFile, JSON.stringify({ keys: published.map(({ jwk }) => jwk) }));
  writeJwks(Object.values(keys));

  const payload = (claims: Claims): Claims => ({
    iss: name,
    aud: audience,
    sub: 'user',
    tenant_id: 'acme',
    iat: nowS(),
    exp: nowS() + 600,
    jti: randomUUID(),
    ...claims,
  });
  return {
    name,
    audience,
    jwksFile,
    keys,
    writeJwks,
    mint: (claims = {}, { key = keys.EdDSA, header = {} } = {}) =>
      new SignJWT(JSON.parse(JSON.stringify(payload(claims))) as Record<string, unknown>)
        .setProtectedHeader(
          JSON.parse(JSON.stringify({ alg: key.algorithm, kid: key.kid, ...header })) as { alg: string },
        )
        .sign(key.privateKey),
    unsecured: (claims = {}) => new UnsecuredJWT(payload(claims)).encode(),
  };
}
