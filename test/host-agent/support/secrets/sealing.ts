/** Seals values as gateways do. */
import { createCurve } from '@nats-io/nkeys';

/** @param key the public key of the agent */
export function seal(value: object, key: string): string {
  const sender = createCurve();
  const sealed = sender.seal(new Uint8Array(Buffer.from(JSON.stringify(value))), key);
  return Buffer.concat([Buffer.from(sender.getPublicKey()), sealed]).toString('base64url');
}

export const secretOf = (value: string | Uint8Array) => ({ value: Buffer.from(value).toString('base64') });
