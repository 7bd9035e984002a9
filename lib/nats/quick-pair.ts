/**
 * The library's key pair, but signing and verifying with OpenSSL. The library's own Ed25519 is
 * JavaScript and derives the key several times for each signature: 10 ms for a connection of an
 * agent, and 23 ms for an enrolment, in which the event loop does nothing else (measured on two
 * machines).
 */
import { createPrivateKey, createPublicKey, sign, verify, type KeyObject } from 'node:crypto';
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

/**
 * Verifies that the key signed the text.
 * @param nkey a public nkey, of whose form the caller is sure; its checksum is not checked
 * @param signature base64url
 */
export function isSignedBy(nkey: string, text: Uint8Array, signature: string): boolean {
  const key = createPublicKey({ key: Buffer.concat([spkiPrefix, rawKeyIn(nkey)]), format: 'der', type: 'spki' });
  return verify(null, text, key, Buffer.from(signature, 'base64url'));
}

/** SPKI of an Ed25519 key (RFC 8410), up to its 32 bytes. */
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex');

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/**
 * The 32 bytes of a public nkey: base32 of its kind, the key and a checksum. By hand, because the
 * library keeps them to itself.
 */
function rawKeyIn(nkey: string): Buffer {
  const bytes: number[] = [];
  let bits = 0;
  let held = 0;
  for (const letter of nkey) {
    held = ((held << 5) | alphabet.indexOf(letter)) & 0xfff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push((held >> bits) & 0xff);
  }
  return Buffer.from(bytes.slice(1, 33));
}
