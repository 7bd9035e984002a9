/** Random values: pre-shared keys, passwords, serial numbers. */
import { randomBytes, randomInt } from 'node:crypto';

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
