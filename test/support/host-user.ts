/** NATS credentials of hosts: of those that no test enrols, and what an agent asks renewal with. */
import { randomBytes } from 'node:crypto';
import { signHostJwt } from '../../lib/nats/host-credentials.ts';
import { quickPair } from '../../lib/nats/quick-pair.ts';
import { renewalText } from '../../lib/nats/renewal.ts';
import type { RenewBody } from '../../schemas/api/host.ts';
import type { HostKey } from '../../schemas/ids.ts';

export interface HostUser {
  readonly hostKey: string;
  /** The host's own public user key (`U...`); its seed never leaves the host. */
  readonly publicKey: string;
  readonly hostsAccount: string;
  readonly hostsSigningSeed: string;
  /** Seconds since 1970; default: one hour from now. */
  readonly expiresAtS?: number;
}

/** The JWT that the control plane gives to a host at enrolment. */
export function mintHostUserJwt(host: HostUser): Promise<string> {
  const account = { publicKey: host.hostsAccount, signingSeed: host.hostsSigningSeed.trim() };
  const expiresAtS = host.expiresAtS ?? Math.floor(Date.now() / 1000) + 3600;
  // Not validated here: the signer refuses an invalid host key.
  const { hostKey, publicKey } = host;
  return signHostJwt(account, { host: hostKey as HostKey, publicKey, expiresAtS });
}

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
