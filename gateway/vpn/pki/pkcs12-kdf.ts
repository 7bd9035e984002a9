/** Key derivation of PKCS#12 (RFC 7292 appendix B.2), with SHA-1 or SHA-256. Pure. */
import { createHash, hash as hashOf } from 'node:crypto';

const hashes = { sha1: { output: 20, block: 64 }, sha256: { output: 32, block: 64 } } as const;
export type KdfHash = keyof typeof hashes;

/** Appendix B.3: the purpose of the derived bytes. */
export const kdfPurposes = { key: 1, iv: 2, mac: 3 } as const;

/** Appendix B.1: UTF-16, big-endian, with two zero bytes at the end. */
export const bmpPassword = (password: string): Buffer => Buffer.from(`${password}\0`, 'utf16le').swap16();

/** Repeats the bytes up to a whole number of blocks. */
function repeated(bytes: Uint8Array, block: number): Buffer {
  return bytes.length === 0 ? Buffer.alloc(0) : Buffer.alloc(block * Math.ceil(bytes.length / block), bytes);
}

/** Appendix B.2 step 6C: each block of `bytes` becomes itself + `addend` + 1, modulo its size. */
function addToBlocks(bytes: Buffer, addend: Buffer): void {
  for (let start = 0; start < bytes.length; start += addend.length) {
    let carry = 1;
    for (let index = addend.length - 1; index >= 0; index--) {
      const sum = bytes.readUInt8(start + index) + addend.readUInt8(index) + carry;
      bytes.writeUInt8(sum & 0xff, start + index);
      carry = sum >> 8;
    }
  }
}

export function deriveBytes(options: {
  readonly hash: KdfHash;
  readonly purpose: keyof typeof kdfPurposes;
  readonly password: Uint8Array;
  readonly salt: Uint8Array;
  readonly iterations: number;
  readonly length: number;
}): Buffer {
  const { hash, purpose, password, salt, iterations, length } = options;
  const { output, block } = hashes[hash];
  const diversifier = Buffer.alloc(block, kdfPurposes[purpose]);
  const input = Buffer.concat([repeated(salt, block), repeated(password, block)]);
  const parts: Buffer[] = [];
  for (let made = 0; made < length; made += output) {
    let part = createHash(hash).update(diversifier).update(input).digest();
    // `hashOf` in one call a round saves a third of the time of a bundle.
    for (let round = 1; round < iterations; round++) part = hashOf(hash, part, 'buffer');
    parts.push(part);
    addToBlocks(input, repeated(part, block).subarray(0, block));
  }
  return Buffer.concat(parts).subarray(0, length);
}
