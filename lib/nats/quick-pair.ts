/**
 * The library's key pair, but signing with OpenSSL. The library's own Ed25519 is JavaScript and
 * derives the key several times for each signature: 10 ms for a connection of an agent, and 23 ms
 * for an enrolment, in which the event loop does nothing else (measured on two machines).
 */
import { createPrivateKey, sign, type KeyObject } from 'node:crypto';
import { fromSeed, type KeyPair } from '@nats-io/nkeys';
import type { Authenticator } from '@nats-io/transport-node';

/** PKCS#8 of an Ed25519 key (RFC 8410), up to the 32 bytes of its seed. */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex');

function privateKeyOf(pair: KeyPair): KeyObject {
  // The library has this class, but not in its interface.
  const seed = (pair as KeyPair & { getRawSeed(): Uint8Array }).getRawSeed();
  return createPrivateKey({ key: Buffer.concat([pkcs8Prefix, seed]), format: 'der', type: 'pkcs8' });
}

/** @param seed of an operator, an account or a user, as text: `SO…`, `SA…` or `SU…` */
export function quickPair(seed: Uint8Array): KeyPair {
  const pair = fromSeed(seed);
  const publicKey = pair.getPublicKey();
  let secret: Uint8Array | undefined;
  const key = privateKeyOf(pair);
  return Object.assign(Object.create(pair) as KeyPair, {
    getPublicKey: () => publicKey,
    getPrivateKey: () => (secret ??= pair.getPrivateKey()),
    sign: (data: Uint8Array): Uint8Array => sign(null, data, key),
  });
}

/** Signs the server's nonce at each connection, beside the JWT that is valid then. */
export function jwtAuthenticator(jwt: () => string, seed: Uint8Array): Authenticator {
  const pair = quickPair(seed);
  return (nonce = '') => ({
    jwt: jwt(),
    nkey: pair.getPublicKey(),
    sig: Buffer.from(pair.sign(Buffer.from(nonce))).toString('base64'),
  });
}
