/** A JSON Web Key Set (RFC 7517), and the key in it that a token names. */
import { importJWK, type JWK } from 'jose';
import { namesOf, type Algorithm } from './claims.ts';

export type VerificationKey = Awaited<ReturnType<typeof importJWK>>;

export interface KeySet {
  readonly size: number;
  /** `undefined` if no key of that id fits the algorithm. Rejects if the key is damaged. */
  find(keyId: string, algorithm: Algorithm): Promise<VerificationKey> | undefined;
}

export class JwksError extends Error {}

const fits = (jwk: JWK, algorithm: Algorithm): boolean => {
  if (jwk.use !== undefined && jwk.use !== 'sig') return false;
  if (jwk.alg !== undefined && !namesOf(algorithm).includes(jwk.alg)) return false;
  switch (algorithm) {
    case 'EdDSA':
      return jwk.kty === 'OKP' && jwk.crv === 'Ed25519';
    case 'ES256':
      return jwk.kty === 'EC' && jwk.crv === 'P-256';
    case 'RS256':
      return jwk.kty === 'RSA';
  }
};

/**
 * Leaves out the private parts of a key that was published by mistake: with them it would be
 * imported as a private key, which cannot verify.
 */
const publicPart = ({ kty, crv, x, y, n, e }: JWK): JWK =>
  Object.fromEntries(Object.entries({ kty, crv, x, y, n, e }).filter(([, value]) => value !== undefined));

const isJwk = (value: unknown): value is JWK & { kid: string } =>
  typeof value === 'object' && value !== null && 'kid' in value && typeof value.kid === 'string' && 'kty' in value;

/** @throws JwksError. Keys without an id are left out: a token must name its key. */
export function parseJwks(text: string): KeySet {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw new JwksError('the key set is not JSON', { cause });
  }
  const keys = typeof parsed === 'object' && parsed !== null && 'keys' in parsed ? parsed.keys : undefined;
  if (!Array.isArray(keys)) throw new JwksError('the key set has no list "keys"');
  const jwks = keys.filter(isJwk);
  const imported = new Map<string, Promise<VerificationKey>>();
  return {
    size: jwks.length,
    find(keyId, algorithm) {
      const name = `${algorithm} ${keyId}`;
      const known = imported.get(name);
      if (known !== undefined) return known;
      const jwk = jwks.find((candidate) => candidate.kid === keyId && fits(candidate, algorithm));
      if (jwk === undefined) return undefined;
      const key = importJWK(publicPart(jwk), algorithm);
      imported.set(name, key);
      return key;
    },
  };
}
