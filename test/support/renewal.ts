/** What an agent sends to have expired credentials renewed. */
import { randomBytes } from 'node:crypto';
import { quickPair } from '../../lib/nats/quick-pair.ts';
import { renewalText } from '../../lib/nats/renewal.ts';
import type { RenewBody } from '../../schemas/api/host.ts';
import type { HostKey } from '../../schemas/ids.ts';

export function signedRenewal(seed: Uint8Array, host: HostKey, atMs = Date.now()): RenewBody {
  const pair = quickPair(seed);
  const signed = {
    host_key: host,
    public_key: pair.getPublicKey(),
    at: new Date(atMs).toISOString(),
    nonce: randomBytes(16).toString('base64url'),
  };
  return { ...signed, signature: Buffer.from(pair.sign(renewalText(signed))).toString('base64url') };
}
