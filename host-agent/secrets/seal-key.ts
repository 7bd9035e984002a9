/**
 * The curve key that secrets are sealed to. It is made at the first start and never leaves the
 * machine; each ask names its public part (ADR 38). Without it the boxes on disk cannot be opened,
 * and the agent asks for them again.
 */
import { createCurve, fromCurveSeed, type KeyPair } from '@nats-io/nkeys';
import { join } from 'node:path';
import type { Log } from '../../lib/log.ts';
import { senderKeyBytes } from '../../schemas/wire/unseal.ts';
import { seedIn } from '../link/identity/identity.ts';
import { readDecoded, writeAtomically } from '../disk/files.ts';

export interface SealKey {
  readonly publicKey: string;
  /** The content of a box; `undefined` if it is damaged, or sealed to another key. */
  open(box: string): Uint8Array | undefined;
}

export const sealKeyPath = (stateDir: string): string => join(stateDir, 'seal.nk');

export async function loadSealKey(stateDir: string, log: Log): Promise<SealKey> {
  const path = sealKeyPath(stateDir);
  const known = await readDecoded(path, (bytes) => fromCurveSeed(seedIn(Buffer.from(bytes))), log);
  if (known !== undefined) return sealKeyOf(known);
  const made = createCurve();
  // A disk that takes no writes costs nothing now: sealed values are asked for again.
  await writeAtomically(path, made.getSeed()).catch((error: unknown) => log.warn('seal_key_write_failed', { error }));
  return sealKeyOf(made);
}

export function sealKeyOf(pair: KeyPair): SealKey {
  return {
    publicKey: pair.getPublicKey(),
    open: (box) => {
      const bytes = Buffer.from(box, 'base64url');
      try {
        const sender = bytes.toString('latin1', 0, senderKeyBytes);
        return pair.open(new Uint8Array(bytes.subarray(senderKeyBytes)), sender) ?? undefined;
      } catch {
        return undefined;
      }
    },
  };
}
