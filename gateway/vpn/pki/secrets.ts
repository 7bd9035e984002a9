/** Random values: WireGuard keys, passwords, serial numbers. */
import { generateKeyPairSync, randomBytes, randomInt } from 'node:crypto';

export interface WireguardKeys {
  /** Base64, as `wg` writes them. */
  readonly publicKey: string;
  readonly privateKey: string;
}

/**
 * RFC 7748 section 5: X25519 sets or clears these bits anyway, and `wg genkey` stores keys that
 * way.
 */
function clamped(key: Buffer): Buffer {
  key.writeUInt8(key.readUInt8(0) & 248, 0);
  key.writeUInt8((key.readUInt8(31) & 127) | 64, 31);
  return key;
}

export function newWireguardKeys(): WireguardKeys {
  const { d = '', x = '' } = generateKeyPairSync('x25519').privateKey.export({ format: 'jwk' });
  return {
    publicKey: Buffer.from(x, 'base64url').toString('base64'),
    privateKey: clamped(Buffer.from(d, 'base64url')).toString('base64'),
  };
}

export const newPresharedKey = (): string => randomBytes(32).toString('base64');

const passwordLength = 18;
/** Letters and digits that look different in every font: without 0, O, o, 1, l and I. */
export const passwordAlphabet = 'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789';

/** A password of over 100 bits; `randomInt` has no bias. */
export const newPassword = (): string =>
  Array.from({ length: passwordLength }, () => passwordAlphabet[randomInt(passwordAlphabet.length)]).join('');

/**
 * A serial number of 16 bytes in hex. RFC 5280 section 4.1.2.2 requires a positive number of at
 * most 20 bytes. The first byte is from 1 to 127, because DER would add a byte to a higher one and
 * drop a zero.
 */
export function newSerial(random: (bytes: number) => Uint8Array = randomBytes): string {
  for (;;) {
    const bytes = random(16);
    const [first = 0] = bytes;
    if (first > 0 && first < 128) return Buffer.from(bytes).toString('hex');
  }
}
