/**
 * Values sealed to the key of an agent: nkeys' curve box (X25519, XSalsa20-Poly1305) from a key
 * that is used once. Behind the sender's public key, because the agent needs it to open the box.
 */
import { createCurve } from '@nats-io/nkeys';
import { KiB } from '../../schemas/limits/units.ts';

/** Steps of the values with which the box of agents is warmed up. */
const boxWarmUpBytes = 8 * KiB;

/** @throws an error if the key is not valid */
export function sealTo(publicKey: string, plain: Uint8Array): string {
  const sender = createCurve();
  try {
    const sealed = sender.seal(plain, publicKey);
    return Buffer.concat([Buffer.from(sender.getPublicKey()), sealed]).toString('base64url');
  } finally {
    sender.clear();
  }
}

/**
 * Its first uses are slow, because they run before the engine has compiled them: the largest value
 * took 48 ms of CPU then, and 2.4 afterwards. So it is used a few times while nobody waits.
 */
export async function warmUp(turn: () => Promise<void>): Promise<void> {
  const key = createCurve();
  for (const bytes of [0, 1, 2, 4].map((times) => times * boxWarmUpBytes)) {
    await turn();
    sealTo(key.getPublicKey(), Buffer.alloc(bytes));
  }
}
