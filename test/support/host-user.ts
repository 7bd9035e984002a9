/** NATS credentials that tests make: of hosts without an enrolment, and of users of CP. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeUser, fmtCreds, type User } from '@nats-io/jwt';
import { createUser, fromSeed } from '@nats-io/nkeys';
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

/**
 * Credentials of a new user of the account CP; by default it may do everything there.
 * @param credsFile of a user of that account, beside the account's seed
 * @param permissionsOf by the user's public key
 */
export async function credentialsOfCp(
  credsFile: string,
  permissionsOf: (publicKey: string) => Partial<User> = () => ({}),
): Promise<Uint8Array> {
  const account = fromSeed(readFileSync(join(credsFile, '..', 'cp.seed')));
  const user = createUser();
  return fmtCreds(await encodeUser('test', user, account, permissionsOf(user.getPublicKey())), user);
}
