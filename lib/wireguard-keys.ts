/** Keys of WireGuard, in base64, as `wg` writes them. */
import { generateKeyPairSync } from 'node:crypto';

export interface WireguardKeys {
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
