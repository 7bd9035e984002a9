/** What is drawn at random: WireGuard keys, passwords, tokens, serial numbers. */
import { createHash, generateKeyPairSync, randomBytes, randomInt } from 'node:crypto';
import type { TokenScope } from '../../../schemas/api/peer.ts';

export interface WireguardKeys {
  /** Base64, as `wg` writes them. */
  readonly publicKey: string;
  readonly privateKey: string;
}

/**
 * RFC 7748 section 5: bits that X25519 sets or clears anyway; `wg genkey` stores keys with that
 * done.
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
/** Letters and digits that no two fonts make alike: no 0 and O, no 1, l and I, no o. */
export const passwordAlphabet = 'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789';

/** Over 100 bits; `randomInt` draws again rather than be uneven. */
export const newPassword = (): string =>
  Array.from({ length: passwordLength }, () => passwordAlphabet[randomInt(passwordAlphabet.length)]).join('');

const scopeMarks = { download: 'd', pac: 'p' } as const satisfies Record<TokenScope, string>;

/** SHA-256, hex: all that is stored of a token. It is random, so nothing slower is needed. */
export const hashOfToken = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The partition tells who can say whether the token is good. */
export function newToken(scope: TokenScope, partition: number): { readonly text: string; readonly hash: string } {
  const text = `ls${scopeMarks[scope]}_${partition}_${randomBytes(32).toString('base64url')}`;
  return { text, hash: hashOfToken(text) };
}

/** Undefined for what can't be a token of ours. */
export function parseToken(text: string): { readonly scope: TokenScope; readonly partition: number } | undefined {
  const [, mark, partition] = /^ls([dp])_(0|[1-9]\d{0,3})_[A-Za-z0-9_-]{43}$/.exec(text) ?? [];
  if (partition === undefined) return undefined;
  return { scope: mark === scopeMarks.pac ? 'pac' : 'download', partition: Number(partition) };
}

/**
 * 16 bytes, hex. RFC 5280 section 4.1.2.2 wants a positive number of 20 bytes at most; as DER
 * writes numbers, a first byte over 127 would make it negative, or a byte longer, and a first byte
 * of 0 would be left out.
 */
export function newSerial(random: (bytes: number) => Uint8Array = randomBytes): string {
  for (;;) {
    const bytes = random(16);
    const [first = 0] = bytes;
    if (first > 0 && first < 128) return Buffer.from(bytes).toString('hex');
  }
}
