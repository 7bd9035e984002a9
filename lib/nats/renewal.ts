/**
 * What the key of an agent signs to have its expired credentials renewed. The answer is credentials
 * for that key alone, so they are of no use to anyone who relays or repeats the request.
 */
import { createPublicKey, verify } from 'node:crypto';
import type { RenewBody } from '../../schemas/api/host.ts';

/** The signed text: each field on a line of its own, after the name of this form. */
export const renewalText = ({ host_key, public_key, at, nonce }: Omit<RenewBody, 'signature'>): Buffer =>
  Buffer.from(['longshore-renew-1', host_key, public_key, at, nonce, ''].join('\n'));

/** Whether the key that the request names has signed it. */
export function isSignedRenewal({ signature, ...signed }: RenewBody): boolean {
  const key = createPublicKey({
    key: Buffer.concat([spkiPrefix, rawKeyIn(signed.public_key)]),
    format: 'der',
    type: 'spki',
  });
  return verify(null, renewalText(signed), key, Buffer.from(signature, 'base64url'));
}

/** SPKI of an Ed25519 key (RFC 8410), up to its 32 bytes. */
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex');

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/**
 * The 32 bytes of a public nkey: base32 of its kind, the key and a checksum. By hand, because the
 * library keeps them to itself, and its own Ed25519 is JavaScript, which takes milliseconds.
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
